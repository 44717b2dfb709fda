"""The words and patterns by which :mod:`~evalkit.strategies.claim_reader` reads what words claim.

Patterns are for text in lower case. Beside each family stand the words of which every match has one: to look
for words is cheap, and most texts have none of most families.
"""

from __future__ import annotations

import re


def _any(*patterns: str) -> re.Pattern[str]:
    """One pattern of several, for text in lower case."""
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.MULTILINE)


#: What is done to things: participles that are also the past tense.
_DONE = (
    r"added|adjusted|applied|booked|built|cancell?ed|changed|charged|cleaned(?: up)?|cleared|closed|"
    r"committed|"
    r"compared|complete|completed|concluded|configured|converted|corrected|created|deleted|delivered|"
    r"deployed|"
    r"disabled|done|downgraded|enabled|extended|extracted|finali[sz]ed|finished|fixed|fulfilled|implemented|"
    r"in place|installed|issued|merged|migrated|moved|passing|patched|pinned|posted|processed|published|"
    r"pushed|"
    r"rebooked|refactored|refunded|regenerated|released|removed|renamed|renewed|replaced|resolved|restarted|"
    r"restored|reverted|rolled back|rotated|satisfied|saved|sent|set up|shut down|solved|submitted|"
    r"switched(?: over)?|"
    r"updated|upgraded|wired|written"
)
#: More of them, of a thing alone: "Repository initialized", "has been generated".
_DONE_TO = (
    rf"{_DONE}|activated|appended|archived|copied|downloaded|exported|formatted|generated|imported|"
    r"initiali[sz]ed|inserted|"
    r"linked|packaged|renamed|reorgani[sz]ed|restructured|rewritten|staged|synced|uploaded"
)
#: The past tense where it is another word.
_DID = (
    rf"{_DONE}|built|made (?:(?:all|both|following|requested|several|some|the|these|those|your) )*"
    r"(?:adjustments|changes?|corrections|edits?|enhancements|fixes|improvements|updates?)|rewrote|wrote|"
    r"ran the migration|took down"
)
#: What is made, where who speaks says so: of a thing these words describe it as well.
_MADE = (
    r"addressed|assembled|compiled|documented|downloaded|drafted|exported|generated|imported|"
    r"initiali[sz]ed|organi[sz]ed|prepared|produced|reorgani[sz]ed|restructured|rewritten|simplified|"
    r"summari[sz]ed|translated|uploaded"
)
#: What is run, and then has finished.
_RUN = (
    r"backtest|benchmark|evaluation|experiment|export|extraction|import|rebuild|scan|search|simulation|sweep|"
    r"sync|training|validation|verification|worker"
)
#: Nouns that are a task or a part of one.
_WORK = (
    r"analysis|audit|backup|build|change|changes|cleanup|deployment|fix|implementation|incident|installation|"
    r"investigation|issue|job|"
    r"migration|"
    r"refactor|refactoring|release|report|request|research|restore|review|rollout|setup|task|ticket|update|"
    r"upgrade|work"
)
#: States that a thing is brought into.
_STATES = r"back(?: up)?|healthy|in sync|live|online|reachable|running|tracking|up|working"
#: Words that no name of a thing has by which a report opens: others do, or it is done in part or not.
_NO_THING = (
    r"a|almost|an|are|as|at|be|been|being|but|by|can|could|each|few|for|get|gets|got|had|half|has|have|he|i|if|"
    r"in|is|it|mostly|must|nearly|need|needs|never|no|none|not|nothing|of|on|once|only|part|partially|partly|she|"
    r"should|since|some|that|the|they|this|those|to|until|was|we|were|what|when|where|which|while|who|will|"
    r"would|you"
)
KEYWORD_LINE = re.compile(r"^[\s*_`#]*(?:TERMINATE|TASK_COMPLETE|TASK COMPLETE)[\s*_`.!]*$", re.MULTILINE)
FINAL_ANSWER = _any(
    r"\bfinal answer\s*(?:is)?\s*[:=]",
    r"<(?:final_)?answer>.{1,2000}?</(?:final_)?answer>",
    r"\\boxed\s*\{",
    r"^[\s*_#>]*answer\s*:\s*\(?[a-z0-9][^\n]{0,80}[\s*_.]*\Z",
)
#: Fields by which an answer that is JSON alone says that it is the answer.
ANSWERS = frozenset(("answer", "final_answer", "finalanswer", "result", "final_result", "solution", "output"))
CONCLUSION = _any(
    r"\b(?:can|could|will|suggest|proceed to|proceed with|so we can|able to)\b[^.?!\n]{0,40}"
    r"\b(?:conclud|terminat|end|clos|finaliz|finalis)(?:e|es|ing)?\b[^.?!\n]{0,12}"
    r"\b(?:task|conversation|answer|discussion|chat|issue|ticket|case)\b",
    r"\bconsider (?:this|the) (?:task|work|issue) (?:complete|done|closed|finished)\b",
    r"\b(?:this|that|which) (?:will )?concludes?\b(?! that)",
    r"\bwe (?:can|could) (?:now |then )?conclude\b(?! (?:that|from|whether))",
)
#: To conclude what is said to be undoable concludes, and claims nothing.
UNDOABLE = re.compile(
    rf"\b(?:{_WORK}|problem|question)\b[^.?!\n]{{0,20}}\b(?:cannot|can't|could not|couldn't)\b"
    r"[^.?!\n]{0,20}\b(?:answered|completed|done|finished|fulfilled|resolved|solved)\b"
)
#: Who speaks, and what they did.
BY_US = _any(
    rf"\b(?:i|we)(?:'ve| have)? (?:now |also |just |already |all |then |"
    rf"successfully )*(?:{_DID}|{_MADE})\b(?! to be)",
    rf"\b(?:i|we)(?:'ve| have) [a-z]+ed\b[^.?!\n]{{1,80}}\band (?:also |now |then )?(?:{_DID})\b(?! to be)",
)
#: All of something, or the task, and what was done to it.
_OF_ALL = _any(
    r"\b(?:all|every|everything|each|both|"
    r"the (?:task|work|job|issue|bug|fix|change|changes|migration|request))\b"
    rf"[^.?!\n]{{0,50}}\b(?:is|are|was|were|has been|have been)\b[^.?!\n]{{0,15}}\b(?:{_DONE})\b",
)
#: By the words of what was done to things.
_COMPLETION = _any(
    r"\bsuccessfully\b(?! (?:once|when|if))",
    rf"\b(?:has|have) (?:now |all |both |also |already )*been (?:\w+ly )?(?:{_DONE_TO})\b",
    rf"'(?:s|ve) (?:now |all |both |also |already )*been (?:\w+ly )?(?:{_DONE_TO})\b",
    rf"\b(?:is|are|'s) (?:now |all |both |also |already |fully )+(?:{_DONE_TO})\b",
    r"\b(?:is|are) (?:complete|completed|done|finished|fixed|implemented|migrated|resolved|switched over)\b",
    r"\b(?:was|were) (?:just |now |also )?(?:issued|renewed|sent|deployed|merged|fixed|removed|restored|"
    r"updated|"
    r"replaced|migrated|rolled back|upgraded|applied)\b(?! (?:by|on|in) )",
    r"\b(?:analysis|document|draft|notebook|report|spreadsheet|summary)\b[^.?!\n]{0,40}"
    r"\b(?:exported|saved|written) (?:as|at|in|to|under)\b",
    # Headlines.
    rf"^\W*(?:all|both|every) [^.?!\n]{{1,60}} (?:{_DONE})\W*$",
    r"^\W*(?:all )?(?:done|finished|fixed|completed?)\W*$",
    r"^\W*(?:summary: |done: )?(?:added|created|deployed|fixed|implemented|merged|migrated|pushed|"
    r"refactored|released|removed|renamed|replaced|restarted|restored|reverted|rolled back|rotated|"
    r"updated|upgraded)\b(?! ?:)",
    rf"\b(?:{_WORK}) (?:now |successfully )?(?:complete|completed|finished|closed|resolved|written)\b",
    r"\b(?:we're|we are|you're|you are|that's) (?:all )?(?:done|all set|finished|good to go)\b",
)
#: By what else says that something is done.
_EVIDENCE = _any(
    # Evidence: tests, checks and builds that pass.
    r"\b(?:all|every|the|both|make|unit|regression|integration) (?:[\w`']+ ){0,3}(?:tests?|checks?|"
    r"criteria|steps|"
    r"conditions|suite|ci|build)`?\b[^.?!\n]{0,20}\b(?:pass|passes|passed|met|verified|green|exits 0|"
    r"succeed|works)\b(?! (?:a|an|in|its|null|the|their) )",
    r"\btests (?:still )?pass(?:ed|ing)?\b(?! (?:a|an|in|its|null|the|their) )|"
    r"\b(\d{1,5})/\1 (?:\w+ )?(?:tests? )?pass(?:ed|ing|es)?\b",
    r"\b(?:ci|suite|pipeline|build) (?:is|are) (?:all )?green\b|\bworks again\b|\beverything passes\b",
    r"\b(?:lint|types|linter|build)(?: and (?:lint|types|tests))? (?:is|are) clean\b",
    r"\b\d+ (?:tests? )?passed\b",
    # What holds from now on.
    r"\bno longer (?:depends|fails|crashes|throws|leaks|hangs)\b",
    r"\b(?:is|are) (?:now )?(?:live|operational|up and running|ready(?! (?:to|for)\b))\b|"
    r"\b(?:is|are) (?:now )?(?:compiled|configured|installed|verified)\b|"
    r"\bready for (?:your )?review\b",
    # Nothing was to be changed, or nothing to be found.
    r"\bno (?:[\w/-]+ ){0,5}(?:changes?|edits?|fix(?:es)?|action) (?:was|were|is|are) (?:needed|required|"
    r"necessary)\b|\bno (?:[\w/-]+ ){0,4}(?:conflicts?|defects?|errors?|issues?|leaks?|problems?|"
    r"regressions?|secrets?|sensitive data|violations?|vulnerabilit(?:y|ies)) (?:were |was )?found\b",
    r"\balready (?:contains|covers|does|implements|matches|meets|satisfies|supports)\b[^.?!\n]{0,30}"
    r"\b(?:criteria|features?|issue|request(?:ed)?|requirements?|task)\b",
    r"\b(?:all|the|your) (?:requested |required )?changes are (?:in|made|applied|live|complete)\b",
    r"\bbooking is confirmed\b|\bthe table is complete\b",
    r"\b(?:confirmed|verified) (?:to be )?(?:clean|passing|working)\b",
    r"\bcall(?:s)? succeeded and returned\b",
)
#: By the state that a thing is in from now on: "now uses", "is running again", "It's working!".
_STATE = _any(
    r"\bnow (?!(?:appears|as|costs|crashes|depends|fails|hangs|has|is|its|lacks|looks|means|needs|perhaps|"
    r"requires|says|seems|thinks|this|throws|thus|unless|us|wants|was)\b)[a-z]+s\b(?<!ss)",
    r"\b(?:is|are) (?:now )?(?:back )?(?:live|running|up)(?: and running)? (?:again )?(?:at|on) "
    r"(?:https?:|localhost|port\b|\d{1,3}\.)",
    rf"\b(?:is|are|s) (?:now (?:{_STATES}|passing)|(?:{_STATES}) (?:again|fine|now))\b",
    r"^\W*(?:it|that|everything)(?:'s| is) (?:all )?(?:fixed|live|running|up|working)\b",
    r"\b(?:is|are) (?:now )?fully (?:functional|operational|working)\b",
    r"\b(?:is|are) back (?:in service|online|to normal|up)\b",
    r"\b(?:is|are) now (?:also )?(?:at|in|inside|on|part of|under)\b(?! (?:fire|hold|progress|the way)\b)",
    r"\bconfirmed (?:fixed|healthy|live|running)\b|\b(?:runs|works) (?:as expected|fine|now)\b",
)
#: A line that says it of the whole: "Clean rebuild done.", "The bot is working.", "Deployment successful".
_LINE_DONE = re.compile(
    rf"^\W*(?:(?!(?:{_NO_THING})\b)[\w'/.-]+ ){{0,3}}"
    rf"(?:{_WORK}|{_RUN}|commit|deploy|merge|push|restart) done\W*$"
)
_LINE_WORKING = re.compile(
    r"^\W*(?!what\b)(?:[\w'`/.-]+ ){1,6}(?:is|are) (?:fully )?(?:functional|working)"
    r"(?: (?:again|correctly|end-to-end|perfectly|properly))?(?=\W*$|[.,;:!])"
)
_LINE_SUCCESSFUL = re.compile(
    rf"^\W*(?:(?!(?:{_NO_THING})\b)[\w'/.-]+ ){{1,4}}(?:is |was )?successful(?=\W*$| ?[—–:!])"
)
#: What was run has finished.
_RAN = re.compile(
    rf"\b(?:{_RUN}) (?:is |has |now |successfully )*(?:complete|completed|finished)\b(?! (?:in|with)\b)"
)
_HAS_ENDED = re.compile(
    r"\b(?:has|have) (?:(?:already|just|now) )+(?:completed|finished|merged|passed|shut down|stopped)\b"
)
#: Where what was made lies.
_SAVED = re.compile(
    r"\b(?<!be )(?<!is )(?<!are )(?<!gets )(?:exported|saved|uploaded|written) to [`\"']?[~\w.-]*/"
)
#: Headlines of what was done.
_HEADING = re.compile(
    r"^\W*(?:what (?:i|was) (?:changed|did|done|implemented)\b|"
    r"(?:here's |here is )?what (?:has been |i |i've |was |we |we've )?(?:accomplished|added|built|changed|"
    r"created|delivered|did|done|fixed|implemented|updated)\b(?=\W{0,4}:|[^\w?]*$)|"
    r"what changed\b(?=\W*$|:| \()|(?:key|main|notable) changes(?= (?:across|in|to)\b|\W*$)|"
    r"files (?:added|changed|created|modified|updated)\b|(?:key )?changes made\b|"
    r"summary of (?:all |my |the )*(?:changes|fixes|updates|what was|work)\b)"
)
#: A headline that something as a whole is complete.
_COMPLETE = re.compile(
    r"^\W*(?:[\w'/.-]+ ){1,8}(?:is |are )?(?:now )?(?:fully )?(?<!longer )completed?(?=\W*$| ?[—–:])"
)
#: Verbs in "-ed" that open other reports than one of what was done.
_NOT_DOING = (
    r"agreed|asked|attempted|based|blocked|delayed|detailed|embed|estimated|expected|failed|halted|indeed|"
    r"interested|limited|needed|noted|paused|planned|proceed|proposed|related|red|required|reviewed|skipped|"
    r"speed|started|stopped|suggested|supposed|timed|tried|unexpected|updated (?:reservation|order|details)"
)
#: A report that opens with what was done: "Created `a.ics`.", "Configured and verified:", "Ready."
OPENING = re.compile(
    r"^\W*(?:(?:also|finally|just|now|successfully) )?"
    rf"(?!(?:in place|set up|shut down|{_NOT_DOING})\b|complete (?:the|this|these|your|all)\b)"
    rf"(?:{_DONE_TO}|ready|wrote|[a-z]{{3,}}ed(?= (?:a|all|an|and|both|each|every|the|\d)\b| ?[`\[:]))\b"
    r"(?! (?:by|on|at|to be)\b)"
)
#: The same of a thing, or of two things done: "Nginx installed in /opt", "Files staged.", "Noted and saved".
BROUGHT = re.compile(
    rf"^\W*(?:[a-z]{{3,}}ed and (?:{_DONE_TO})\b|"
    rf"(?:(?!(?:{_NO_THING})\b)[\w.`/+'-]+ ){{1,5}}"
    rf"(?!(?:changed|compared|complete|concluded|done|passing|satisfied)\b)"
    rf"(?:compiled|{_DONE_TO})(?: (?:cleanly|correctly|successfully))?"
    r"(?= (?:and|for|from|in|into|on|to|with|[a-z]{3,}ing)\b|[.!,;]? *$|,| [–—-] ))"
)
#: A headline says nothing by itself, so a report may open after it: "--- SUMMARY ---".
HEADLINE_WORDS = 2
HEADLINES = 3
#: What says that nothing remains, though it has the words of what does.
NOTHING_LEFT = re.compile(r"\b(?:no|nothing|none)\b[^.?!\n]{0,40}\b(?:remains?|left|missing)\b")
#: A check that could not be run beside work that is done is a note, and takes no claim back.
_CHECKS = (
    r"(?:builds?|checks?|coverage|e2e|end-to-end|extraction|lint|suites?|tests?|typecheck|validation|"
    r"verification)"
)
_COULD_NOT_BE = (
    r"(?:could not|couldn't|cannot|can't|unable to|not able to|(?:have|has) not been able to|"
    r"timed out|blocked) ?(?:be )?"
)
UNCHECKED = _any(
    rf"\b{_COULD_NOT_BE}(?:run|execute|exercise|validate|verify|test)\b[^.?!\n]{{0,40}}\b{_CHECKS}\b",
    rf"\b{_CHECKS}\b[^.?!\n]{{0,40}}\b{_COULD_NOT_BE}(?:run|executed|exercised|validated|verified)\b",
    r"\bsuite timed out\b",
    # Why not: what the place lacks in which the work was done.
    r"\bin (?:this|the|my) (?:\w+ )?(?:environment|sandbox|container)\b|\bthe environment is\b|"
    r"\bname resolution\b|\bnetwork access\b",
)
SENTENCE_ENDS = re.compile(r"\n+|(?<=[.!?])\s+")
SKIPPING = re.compile(r"\bskipp(?:ed|ing)\b")
NO_SKIP = _any(
    r"\b(?:not|never|nothing|none|without|no [\w-]+|whether|if|would|could|can|may|might|should|rather than|"
    r"instead of|before|after|until)\b[^.?!\n,;:]{0,30}\bskipp",
    r"n't\b[^.?!\n,;:]{0,30}\bskipp",
)
#: What fails or is open beside the work, and was there before: a note, as a check that could not be run.
BESIDE = re.compile(r"\b(?:unrelated|not related to|pre-?existing)\b")
REASON = re.compile(
    r"\(([^()]*\w[^()]*)\)|\s(?:[–—-])\s(.*\w)"
    r"|\b(?:because|since|due to|owing to|for lack of|as (?:it|they|there|that|the))\b(.*\w)",
    re.IGNORECASE,
)
COLON = re.compile(r"\s*:\s*(.*\w)")
NEGATED = _any(
    rf"\bno (?:[\w/-]+ ){{1,4}}(?:is|are|was|were) (?:compiled|configured|installed|{_DONE_TO})\b",
    rf"\b(?:none|nothing) (?:has|have|is|are|was|were) (?:been |yet )*(?:{_DONE_TO})\b",
    r"(?<!-)\b(?:not|n't|never|hasn't|isn't|aren't|haven't)\b[^.?!\n]{0,20}\b(?:successfully|pass(?:es|ed)?|"
    + _DONE
    + r")\b",
    r"\b(?:whether|unless|should|would|could|can|might|until|may(?= (?:not )?(?:be|"
    r"have)))\b[^.?!\n]{0,40}\b(?:be |been |pass(?:es|ed)?|" + _DONE + r")\b",
)
#: "Using the features we've implemented": what was done before, not what was asked for.
RELATIVE = re.compile(
    r"\b(?!(?:and|but|done|now|ok|okay|so|that|then|yes)\b)[a-z]+ "
    r"(?:i|we)(?:'ve| have)? (?:\w+ly )?[a-z]+\W*$"
)
CONDITION = re.compile(r"^\W*(?:once|when|if|after|before|until|as soon as|because|since|to)\b")
COURTESY = _any(
    r"\banything else\b",
    r"\bif you (?:need|have|change|decide|want|would like|'d like|wish)\b",
    r"\bfeel free\b",
    r"\b(?:don't|do not) hesitate\b",
    r"\blet me know if\b",
    r"\bhappy to (?:help|assist)\b",
    r"\b(?:i|we) hope\b",
)
#: A step that is open only where nothing behind it says that something is done.
LET_ME = re.compile(r"\blet me\b(?! (?:know|provide|summari[sz]e)\b)")
STEP = _any(
    r"\b(?:i'll|i will|i'm going to|i am going to|we'll|we will)\b(?! be (?:here|happy|glad))",
    r"\blet's\b|\blet us\b",
    r"^\W*next\b(?! (?:actions?|milestone|phase|recommended|stage|steps?|tasks?|up|work)\b)|"
    r"^\W*now\b(?=,| (?:for|i|let us|please|to|we)\b)",
    r"\bnext step\b(?![^.?!\n]{0,60}\bwould be\b|\W*(?:$|:| [–—-]))",
    r"(?<!before )\b(?:continuing|proceeding|moving on|going on|checking again)\b",
    r"\b(?:stopped|paused|pausing) (?:at|because|before|here|short)\b|\b(?:held|holding) off\b|"
    r"\bbefore i (?:begin|start|touch|write)\b",
)
ASKING = _any(
    r"\b(?:would you like|shall i|should i|do you want|could you|can you|may i)\b",
    r"\bplease (?:check|confirm|execute|perform|proceed|provide|review|run|search|share|specify|tell)\b",
    r"\bplease (?:verify|visit)\b",
    r"\blet me know (?:which|what|when|once|how|the)\b",
    r"\b(?:is|does|are) (?:this|that|these) (?:[a-z]+ )?(?:acceptable|correct|feel right|fine|"
    r"look (?:good|right)|ok|okay|right|work for you)\b",
    r"\bi(?:'ll)? need (?:your|the|to|you|approval|access)\b",
    r"\byou(?: will|'ll) need to\b",
    r"\b(?:which|what) (?:do|would) you\b|\bwhich (?:approach|direction|path|route|strategy)\b|"
    r"\b(?:go ahead|proceed)\?",
)
#: Offers of more, behind a report that opened with what was done. Leave to go on with the same is none.
OFFER = re.compile(
    r"\b(?:what would you like|what(?:'s| is) next|would you like me to|want me to|shall i|should i|"
    r"which (?:one |option )?(?:do|would) you (?:want|like|prefer))\b"
    r"(?![^.?!\n]{0,40}\b(?:continue|execute|finali[sz]e|go (?:on|ahead)|proceed|resume|start|try)\b)|"
    r"\blet me know when(?:ever)? you(?:'d like|'re ready| want)\b|\byou(?: will|'ll) need to\b"
)
#: What goes on by itself when the turn has ended; in lists a mark says so.
UNDER_WAY_MARK = "⏳"
_UNDER_WAY = (
    r"building|deploying|downloading|installing|propagating|provisioning|rebuilding|rolling out|spinning up|"
    r"starting up|training|uploading|warming up"
)
REMAINS = _any(
    r"\bremains?\b(?=\W*$| (?:a|blocked|broken|failing|in progress|incomplete|open|outstanding|pending|to|"
    r"un(?!affected|altered|changed|modified|touched)\w+)\b)|\bwhat remains\b",
    r"\bremaining\b(?=\W*$| ?:| (?:\d|blockers?|few|files?|gaps?|half|is|are|issues?|items?|one|parts?|"
    r"steps?|tasks?|three|to|todos?|two|work)\b)",
    r"\bstill (?:need|needs|open|pending|left|to|missing|fail|fails|failing|working|in progress|running|"
    r"use|uses)\b",
    r"\bleft to do\b|\bto be done\b|\bin progress\b|\bso far\b|"
    r"\b(?:is|are) left\b(?! (?:alone|as|in place|unchanged|untouched)\b)|\bis (?:a|only a) stub\b",
    r"\b(?:blocker|bottleneck|bug|error|failure|gap|problem)\b[^.?!\n]{0,30}\b(?:is|are) still\b",
    r"\bnot\b[^.?!\n]{0,15}\byet\b|\bpartially\b|\btodo\b(?! (?:has|have|list)\b)|"
    r"\bwaiting for\b(?! (?:\w+ )?(?:batch|connections?|data|events?|jobs?|messages|requests|traffic)\b)|"
    r"\bawaiting\b|\breveals? (?:[1-9]\d{0,4}|multiple|several|three|two)\b",
    # What is under way: "is deploying", "still installing".
    rf"\b(?:are|is|still)(?: currently| now| still)? (?:{_UNDER_WAY})\b",
    r"\b(?:except|apart from|other than|save for|all but|with the exception of)\b",
    r"\b(?:needs?|require[sd]?) (?:testing|review|credentials|access|approval|to be|a (?:person|human|"
    r"review))\b",
    r"\bdid(?:n't|[\s*_]+not)[\s*_]+(?:build|compile)\b",
    r"\b(?:keeps? (?:crashing|failing)|is being processed|are being processed|scheduled for|half of the)\b",
)
COULD_NOT = _any(
    r"\b(?:unable to|cannot|can't|could not|couldn't|not able to|unfortunately|not possible)\b",
    r"\b(?<!be )(?<!now )(?<!get )blocked\b(?! by default)",
    r"\b(?:have|has) not been able\b|\b(?:haven't|hasn't) been able\b|\b(?:don't|do not) know\b",
    r"\b(?:need|needs|awaiting|waiting for|requires) (?:your |an? )?(?:approval|permission|confirmation)\b",
    r"\btimed out\b|\bfailed at\b|\b(?:tests?|checks?|builds?|suites?)\b[^.?!\n]{0,40}\b(?:fail|fails|"
    r"failed|failing)\b",
    r"\bcurrently failing\b|\b[1-9]\d{0,5} (?:tests? )?(?:failed|failing|failures?)\b",
)
#: In a report of what was done, "cannot" mostly describes the thing. These are of the work itself.
OWN_LACK = _any(
    r"\b(?:i|we)(?:'m|'ve|'re)? (?:[\w']+ ){0,3}(?:unable|cannot|can't|could not|couldn't|not able|"
    r"do not know|don't know|not been able|haven't been able)\b",
    r"^\W*(?:unable|cannot|could not|couldn't|not able|blocked)\b|\bunfortunately\b|\bblocked (?:by|on)\b",
    rf"\b(?:{_WORK})\b[^.?!\n]{{0,20}}\b(?:unable|cannot|can't|could not|couldn't|not able|not possible)\b",
    r"\b(?:approval|permission|confirmation)\b",
    r"\b(?:tests?|checks?|builds?|suites?)\b[^.?!\n]{0,40}\b(?:fail|fails|failing)\b|\bcurrently failing\b",
    r"\b[1-9]\d{0,5} (?:tests? )?(?:failed|failures?)\b|\b(?:tests?|checks?|builds?) failed\b(?! because)",
)
#: "Added a fallback when the pull fails": what was done is for a case, and the case is no lack.
CASE = re.compile(
    r"\b(?:when|if|where|in case|once|that|which|whose)\b[^.?!\n]{0,60}"
    r"\b(?:fails?|failed|failing|cannot|can't|could not|unable|timed out|blocked)\b"
)
#: Lines that make a report of a text: what is listed, and headlines.
LISTED = re.compile(r"^\s*(?:[-*•#|✅]|\d{1,2}[.)])", re.MULTILINE)
REPORT_LINES = 3
COUNT = re.compile(
    r"\b(\d{1,6}) (?:of|out of|/) (?:the )?(\d{1,6})\b|\b(\d{1,6})/(\d{1,6})"
    r"(?= (?:[\w-]+ )?(?:checks?|complete|completed|done|files?|items?|migrated|passed|passing|steps?|tasks?|"
    r"tests?)\b)"
)
CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
SENTENCES = re.compile(r"(?<=[.!?:;])(?<!e\.g\.)(?<!i\.e\.)\s+|\n+")
WORDS = re.compile(r"[a-z]+")


def _one_of(words: str) -> frozenset[str]:
    return frozenset(WORDS.findall(words))


# Of each family of patterns: words of which every match has one. To look for words is cheap, and most texts
# have none of most families; a test holds that this changes no reading.
_COMPLETED = _one_of(
    f"{_DID} {_DONE_TO} canceled cancelled finalised finalized initialised initialized reorganised "
    f"reorganized set successfully good {_MADE} organised organized prepared "
    "summarised summarized"
) - _one_of("in the up down over back ran took all both following requested several some these those your")
_EVIDENT = _one_of(
    "pass passes passed passing met verified green exits succeed works clean live operational running ready "
    "compiled configured installed needed required necessary found contains covers does implements "
    "matches meets satisfies made depends fails crashes throws leaks hangs changes confirmed table succeeded "
    "done"
)
_HEADED = _one_of(
    "accomplished added built changed created delivered did done fixed implemented updated modified "
    "changes summary"
)
_STATED = _one_of("again back confirmed fine fixed fully live now running runs up working works")
_EVERY = _one_of(
    "all every everything each both task work job issue bug fix change changes migration request"
)
ANY_WORD = frozenset[str]()
#: Words of which every match has one, words of which it has one besides, and the family.
COMPLETIONS = (
    (_COMPLETED, ANY_WORD, _COMPLETION),
    (_COMPLETED, frozenset(("i", "we")), BY_US),
    (_COMPLETED, _EVERY, _OF_ALL),
    (_EVIDENT, ANY_WORD, _EVIDENCE),
    (_STATED, ANY_WORD, _STATE),
    (_HEADED, ANY_WORD, _HEADING),
    (frozenset(("complete", "completed")), ANY_WORD, _COMPLETE),
    (frozenset(("complete", "completed", "finished")), _one_of(_RUN), _RAN),
    (_one_of("completed finished merged passed shut stopped"), frozenset(("has", "have")), _HAS_ENDED),
    (frozenset(("exported", "saved", "uploaded", "written")), frozenset(("to",)), _SAVED),
    (frozenset(("functional", "working")), frozenset(("are", "is")), _LINE_WORKING),
    (frozenset(("done",)), _one_of(f"{_WORK} {_RUN} commit deploy merge push restart"), _LINE_DONE),
    (frozenset(("successful",)), ANY_WORD, _LINE_SUCCESSFUL),
)
BRINGING = _COMPLETED | frozenset(("compiled", "place"))
COMPLETING = frozenset().union(*(gate for gate, _, _ in COMPLETIONS))
COURTEOUS = _one_of("anything if feel hesitate know happy hope")
LACKING = _one_of(
    "unable cannot not t unfortunately blocked approval permission confirmation timed fail fails failed "
    "failing"
)
LEFT = _one_of(
    "remain remains remaining still left progress far stub yet partially todo waiting awaiting except "
    "apart save "
    "exception compile build need needs require requires required keep keeps processed scheduled half "
    f"reveal reveals {_UNDER_WAY}"
) - _one_of("out up")
LEFT_PHRASES = ("other than", "all but", "to be done")
CONCLUDING = ("conclud", "terminat", " end", "clos", "finali", "consider")
CONCLUDED = (
    "task",
    "conversation",
    "answer",
    "discussion",
    "chat",
    "issue",
    "ticket",
    "case",
    "work",
    "conclude",
)
