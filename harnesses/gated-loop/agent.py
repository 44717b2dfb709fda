"""A queue worker's loop: a turn without calls is a report until the evidence says that it is the end."""

import json
import time
import urllib.error
import urllib.request

from evalkit_harness import serve

NUDGES, CUT_OFFS, RESENDS, TURNS = 3, 3, 25, 40
#: What these do is no work: only a new success of another tool sets the nudges back.
IDLE = ("read_", "list_", "update_checklist")


def post(url, body):
    headers = {"content-type": "application/json", "x-api-key": "none", "anthropic-version": "2023-06-01"}
    body = json.dumps(body).encode()
    for attempt in range(6):
        try:
            return json.load(urllib.request.urlopen(urllib.request.Request(url, body, headers)))
        except (urllib.error.HTTPError, ValueError) as error:
            if attempt == 5 or getattr(error, "code", 500) < 429:
                raise
            time.sleep(0.1 * 2**attempt)


def listed(job):
    return any(name.startswith("list_") and not result.error for name, _, result in job.calls)


def gaps(job):
    ticked = {item for name, told, _ in job.calls if name == "update_checklist" for item in told["done"]}
    done = {told.get("item") for name, told, result in job.calls if not result.error}
    open_items = job.open_items()
    return open_items + [item for item in sorted(done - ticked - {None}) if item not in open_items]


def run(job):
    messages, limit = [{"role": "user", "content": job.prompt}], 4096
    nudges, cut_offs, resends, acted = 0, 0, 0, set()
    for _ in range(job.max_turns or TURNS):
        request = {"model": job.model, "max_tokens": limit, "tools": job.tools, "messages": messages}
        answer = post(f"{job.anthropic_url}/v1/messages", request)
        why, turn = answer["stop_reason"], {"role": "assistant", "content": answer["content"]}
        calls = [block for block in answer["content"] if block["type"] == "tool_use"]
        if why in ("max_tokens", "model_context_window_exceeded"):
            cut_offs, limit = cut_offs + 1, limit * 2
            if cut_offs > CUT_OFFS:
                return escalated(job, why)
            continue
        if why == "refusal":
            return escalated(job, why)
        messages += [turn] if answer["content"] else []
        if why == "pause_turn" and not calls:
            resends += 1
            if resends > RESENDS:
                return escalated(job, why)
            continue
        cut_offs = resends = 0
        if calls:
            results = []
            for call in calls:
                text = job.call(call["name"], call["input"])
                action = f"{call['name']} {json.dumps(call['input'], sort_keys=True)}"
                if not call["name"].startswith(IDLE) and not text.error and action not in acted:
                    acted, nudges = acted | {action}, 0
                results.append({"type": "tool_result", "tool_use_id": call["id"], "content": text})
            messages.append({"role": "user", "content": results})
            continue
        missing = gaps(job)
        if not missing and listed(job):
            return {"native": "closed", "report": report(job)}
        nudges += 1
        if nudges > NUDGES:
            return escalated(job, f"{NUDGES} nudges")
        words = f"Not done yet: {', '.join(missing)}. Continue, or state the blocker."
        messages.append({"role": "user", "content": words if missing else "Continue."})
    return {"native": "turn limit", "report": report(job)}


def report(job, **said):
    # Who has not seen the list knows nothing of what is open.
    return {"outstanding": gaps(job), **said} if listed(job) else said


def escalated(job, why):
    return {"native": f"to a person: {why}", "report": report(job, reason=why)}


serve(run)
