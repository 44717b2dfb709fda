"""A careful loop by hand: what is done it reads itself, and it ends done only where nothing is open.

``EVALKIT_VARIANT`` plants one bug in it.
"""

import json
import os
import urllib.request

from evalkit_harness import serve

NUDGES, CUT_OFFS, RESENDS, TURNS = 3, 3, 25, 40
#: Where a task left what was known, for the bug that takes it into the next one.
LEFT = set()


class Careful:
    """One task: the conversation, what is known of the items, what was counted."""

    def __init__(self, job, bug):
        self.job, self.bug = job, bug
        self.messages = [{"role": "user", "content": job.prompt}]
        self.listed, self.done, self.skipped = [], set(), set()
        self.approved = set()
        self.nudges = self.cut_offs = self.resends = self.calls = 0
        self.acted, self.seen = set(), []
        self.limit, self.messaged = 4096, False
        self.turns = 0
        self.journal = {}
        if bug == "leak":
            self.done |= LEFT
            LEFT.clear()
        self.record = os.path.join(job.folder, "record.json")
        if job.resumes and os.path.exists(self.record):
            with open(self.record) as file:
                kept = json.load(file)
            self.messages, self.listed, self.journal = kept["messages"], kept["listed"], kept["journal"]
            self.done, self.acted = set(kept["done"]), set(kept["acted"])
            self.nudges, self.calls, self.limit = kept["nudges"], kept["calls"], kept["limit"]
            self.turns = kept["turns"]

    def keep(self):
        kept = {"messages": self.messages, "listed": self.listed, "journal": self.journal}
        kept |= {"done": sorted(self.done), "acted": sorted(self.acted)}
        kept |= {"nudges": self.nudges, "calls": self.calls, "limit": self.limit, "turns": self.turns}
        with open(self.record + ".new", "w") as file:
            json.dump(kept, file)
        os.replace(self.record + ".new", self.record)

    def ask(self):
        request = {"model": self.job.model, "max_tokens": self.limit, "tools": self.job.tools}
        body = json.dumps({**request, "messages": self.messages}).encode()
        headers = {"content-type": "application/json", "x-api-key": "none", "anthropic-version": "2023-06-01"}
        url = f"{self.job.anthropic_url}/v1/messages"
        with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as answer:
            return json.load(answer)

    def gaps(self):
        counted = self.done | (self.skipped if self.bug == "skip_is_done" else set())
        return [item for item in self.listed if item not in counted]

    def is_done(self, item):
        """What the state of an item is, whatever a tool said."""
        self.calls += 1
        return str(self.job.call("read_item", {"item": item})).endswith(": done")

    # Calls

    def run(self, calls):
        """The results of a turn's calls; None where the budget forbids them."""
        most = self.job.max_calls
        costs = [2 if call["name"] in ("do_item", "undo_item") else 1 for call in calls]
        looked_at = costs[:1] if self.bug == "budget_before_batch" else costs
        if most is not None and self.calls + sum(looked_at) > most:
            return None
        decided = self.decided(calls)
        return [self.result(call, decided) for call in calls]

    def decided(self, calls):
        """The calls that may run, with their arguments, where a person decides."""
        if os.environ.get("EVALKIT_APPROVAL_URL") is None:
            return {call["id"]: call["input"] for call in calls}
        known = self.approved if self.bug == "approval_reused" else set()
        free = [call for call in calls if call["name"] == "do_item" and call["input"].get("item") in known]
        asked = [call for call in calls if call not in free]
        said = [{"id": call["id"], "tool": call["name"], "arguments": call["input"]} for call in asked]
        allowed = {call["id"]: call["input"] for call in free}
        for decision in self.job.approve(said) if said else ():
            if decision["decision"] != "refuse":
                allowed[decision["id"]] = decision["arguments"]
        return allowed

    def result(self, call, decided):
        item = call["input"].get("item")
        if call["id"] not in decided:
            return {"type": "tool_result", "tool_use_id": call["id"], "content": "refused", "is_error": True}
        text, error = self.made(call, decided[call["id"]])
        if call["name"] == "list_items" and not error:
            self.listed = [name.strip() for name in text.partition(":")[2].split(",") if name.strip()]
        if call["name"] == "do_item" and not error and self.nudges:
            self.approved.add(item)
        if call["name"] in ("do_item", "undo_item"):
            self.take_down(call["name"], item, error)
        return {"type": "tool_result", "tool_use_id": call["id"], "content": text, "is_error": error}

    def made(self, call, arguments):
        """A call made once: on record before, and looked at where it was begun and may be over."""
        known, acts = self.journal.get(call["id"]), call["name"] in ("do_item", "undo_item")
        if isinstance(known, list):
            return known[0], known[1]
        late = self.bug == "double_payment" and self.nudges > 0
        if known == "begun" and acts:
            # Whoever repeats it may do it twice: its effect can be there, or still come.
            stands = self.is_done(arguments["item"]) == (call["name"] == "do_item")
            text, error = ("it happened" if stands else "nobody can say whether it happened"), not stands
        else:
            self.calls += 1
            if not late:
                self.journal[call["id"]] = "begun"
                self.keep()
            text = self.job.call(call["name"], arguments)
            text, error = str(text), text.error
        self.journal[call["id"]] = [text, error]
        self.keep()
        return text, error

    def take_down(self, tool, item, error):
        """Evidence is what the item's state is read to be."""
        if (self.bug == "failed_step" and tool == "do_item" and error) or self.is_done(item):
            self.done.add(item)
        elif self.bug != "evidence_stays" or tool == "do_item":
            self.done.discard(item)
        verb = tool.partition("_")[0]
        if tool == "do_item" and self.bug == "skip_is_done" and "skip" in self.seen:
            self.skipped |= set(self.listed) & {word.strip(".:()") for word in " ".join(self.said).split()}
        if not error and f"{verb} {item}" not in self.acted:
            self.acted.add(f"{verb} {item}")
            self.nudges = 0

    # Turns

    said = ()

    def work(self):
        """The ending."""
        # Counted across kills, or one who is killed in each turn never ends.
        while self.turns < TURNS:
            self.turns += 1
            ending = self.open_turn() or self.step(self.ask())
            if ending is not None:
                return ending
            self.keep()
        return {"ending": "limit", "native": "turns"}

    def open_turn(self):
        """A turn that is on record and whose calls have no results yet is gone on with."""
        last = self.messages[-1]
        if last["role"] != "assistant" or not isinstance(last["content"], list):
            return None
        calls = [block for block in last["content"] if block["type"] == "tool_use"]
        return self.answer(calls) if calls else None

    def answer(self, calls):
        results = self.run(calls)
        if results is None:
            return {"ending": "limit", "native": "budget of calls"}
        self.messages.append({"role": "user", "content": results})
        return None

    def step(self, turn):
        stop, content = turn["stop_reason"], turn["content"]
        calls = [block for block in content if block["type"] == "tool_use"]
        text = " ".join(block["text"] for block in content if block["type"] == "text")
        if stop in ("max_tokens", "model_context_window_exceeded"):
            whole = [call for call in calls if call["input"].get("item")]
            if self.bug == "cut_off_run" and self.seen[-2:] == ["pause", "cut"] and whole:
                self.job.call(whole[0]["name"], whole[0]["input"])
            self.seen.append("cut")
            self.cut_offs, self.limit = self.cut_offs + 1, min(self.limit * 2, 64000)
            return {"ending": "escalated", "native": stop} if self.cut_offs > CUT_OFFS else None
        self.cut_offs = 0
        if stop == "refusal":
            if self.bug == "leak":
                LEFT.update(self.done)
            return {"ending": "escalated", "native": "refusal"}
        if content:
            self.messages.append({"role": "assistant", "content": content})
        if stop == "pause_turn" and not calls:
            self.seen.append("pause")
            self.resends += 1
            return {"ending": "escalated", "native": "pauses"} if self.resends > RESENDS else None
        self.resends = 0
        if calls:
            self.keep()
            return self.answer(calls)
        return self.end_of_turn(text)

    def end_of_turn(self, text):
        claims = "is done" in text
        if "Skipped" in text:
            self.seen.append("skip")
            self.said = (*self.said, text)
        if "denied" in text and "pause" in self.seen:
            self.seen.append("blocker")
        believed = self.bug == "pause_blocker_claim" and "blocker" in self.seen and claims
        believed |= self.bug == "message_resets" and self.messaged and claims
        if believed or (self.listed and not self.gaps()):
            return {"ending": "done", "native": "closed"}
        if self.nudges >= NUDGES:
            return {"ending": "escalated", "native": "nudges"}
        self.nudges += 1
        missing = ", ".join(self.gaps())
        words = f"Still open: {missing}." if missing else "Continue."
        self.messages.append({"role": "user", "content": words})
        return None


def run(job):
    task = Careful(job, job.variant)
    ending = task.work()
    while (message := job.next_message(ending)) is not None:
        if ending["ending"] == "limit":
            continue
        task.messaged, task.nudges, task.turns = True, 0, 0
        task.messages.append({"role": "user", "content": message})
        ending = task.work()
    return ending


serve(run)
