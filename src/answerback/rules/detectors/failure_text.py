"""Whether a text is a failure said in words, and not one about failures.

Three things tell the two apart: how it begins, as one does who has failed; what comes next, which
is nothing, or the reason; and what it is not, a title, a question, a definition, a count, a log.
"""

from __future__ import annotations

import re
from functools import cache

STATUSES = (
    "Bad Request|Unauthorized|Payment Required|Forbidden|Not Found|Method Not Allowed|Conflict|"
    "Request Time-?out|Gone|(?:Payload|Content) Too Large|Unprocessable (?:Entity|Content)|"
    "Too Many Requests|Client Error|Server Error|Internal Server Error|Not Implemented|"
    "Bad Gateway|Service Unavailable|Gateway Time-?out"
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_LONGEST = 600
_MOST_LINES = 7  # A message is a line, and what led to it; a page has several paragraphs.

# What stands before the words: a sign, a level in brackets, the stars of bold type.
_SIGNS = "❌✖✗✘⛔🚫⚠🛑🔴[<*"
_DECORATION = re.compile(
    r"(?:[❌✖✗✘⛔🚫⚠🛑🔴]\ufe0f?\s*)*"
    r"(?P<level>\[(?:error|fatal|exception)\]:?\s*|<error>\s*)?(?:\[(?=Error: )|\*{0,2})",
    re.IGNORECASE,
)
_LEVEL = re.compile(
    r"\W{0,3}(?:error|fatal|warn(?:ing)?|info|note|debug|trace)\b\W|[45]\d\d [A-Z][a-z]+",
    re.IGNORECASE,
)
# A gateway's page, and what Python and pydantic say; none of them is told by its first word.
_WHOLE = re.compile(
    rf"""<(?:!doctype\ html|html)\b.{{0,300}}?<title>\s*(?:[45]\d\d\s(?:-\s)?)?
        (?:{STATUSES.replace(" ", "[ ]")}|Service[ ]Temporarily[ ]Unavailable
          |Authorization[ ]Required)\s*</title>
    | '\w+'\ object\ (?:has\ no\ attribute\ '|is\ not\ (?:iterable|subscriptable|callable))
    | \d+\ validation\ errors?\ for\ \S+\n
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_BEGINS_WHOLE = "<'0123456789"

# `Error: …`, and all that is a name for it. What follows is the message.
_LABEL = re.compile(
    r"""(?:
      (?:(?:fatal|internal|unexpected|unknown|network|api|http|database|server|tool|runtime|system|
            json|parse|syntax|validation|input|output|mcp|sql|query|execution|connection|request|
            authentication|rpc|upstream)\ )*error(?:\ \(?-?\d{1,6}\)?)?
    | error\ code(?=:\ [45]\d\d\b)
    | error\ (?:executing|calling|running|invoking)\ tool\b[^:\n]{0,80}
    | exception | fatal | panic | fehler | erreur | errore | erro | fout | ошибка
    | 错误 | 錯誤 | エラー | 오류
    )(?:(?:\*\*)?\s?[:：](?:\*\*)?\s*(?=\S)|\ -\ (?=(?-i:[a-z0-9]))|[.!](?=\s)|[.!]?$)""",
    re.VERBOSE | re.IGNORECASE,
)
_EXCEPTION = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)(?::\s(?=\S)|$)")

# What a program does, and therefore can fail to do.
_DO = (
    "access|allocate|analy[sz]e|authenticate|clone|commit|communicate|compile|"
    "complete|connect(?= (?:to|with)\\b|[.:!]|$)|contact|convert|copy|create|decode|decrypt|"
    "delete|deploy|deseriali[sz]e|"
    "download|encode|establish|evaluate|execute|export|extract|fetch|generate|import|"
    "initiali[sz]e|insert|install|invoke|load|locate|log in|mount|obtain|open(?! on )|parse|"
    "perform|process|publish|query|reach|read|register|remove|rename|render|resolve|retrieve|"
    "save|scrape|send|start|submit|sync|transcribe|translate|update|upload|validate|verify|"
    "write|find"
)
_DOING = (
    "access|add|allocat|analy[sz]|apply|authenticat|call|clon|commit|communicat|compil|complet|"
    "connect|contact|convert|copy|creat|decod|decrypt|delet|deploy|download|encod|establish|"
    "evaluat|execut|export|extract|fetch|generat|gett|import|initiali[sz]|insert|install|invok|"
    "launch|list|load|mak|mov|obtain|open|pars|perform|process|publish|query|reach|read|register|"
    "remov|renam|render|resolv|retriev|runn|sav|scrap|search|send|start|stopp|submitt|sync|"
    "transcrib|translat|updat|upload|validat|verify|writ"
)
# What is done with errors: `error handling` is a subject, `error annotating page 3:` a message.
_NOUNS = "budget|check|cod|correct|detect|estimat|handl|logg|messag|monitor|rat|report|track|trapp"
# To look for something and find none is an answer, and no failure.
_ANYTHING = (
    "any|anything|an?|all|evidence|signs?|further|more|other|such|problems?|errors?|issues?|"
    "results?|match(?:es)?|differences?|duplicates?|vulnerabilit\\w+|bugs?|proof|traces?"
)
_PROGRAM_DOES = re.compile(_DO, re.IGNORECASE)
_STORY = re.compile(r"[^.:;!\n]{0,80}, (?:the|he|she|they|it|his|her|its|their)\b")
_FAILS = re.compile(
    rf"""(?:
      failed\ to\ (?!(?:find|detect|identify|spot|see)\ (?:{_ANYTHING})\b|reproduce\b)
        (?P<a>[a-z]+)\b
    | (?:(?:i\ (?:am|was)\ |we\ (?:are|were)\ )?unable\ to
        |(?:(?:i|we)\ )?could(?:\ not|n['’]t)|can(?:\ ?not|['’]t))
        \ (?:be\ )?(?P<b>{_DO.replace(" ", "[ ]")})\b(?!\ (?:{_ANYTHING})\b)
    | error\ (?:while\ |when\ )?(?P<c>(?:{_DOING})ing)\b
    | error\ (?P<d>handling)\ (?:the\ |your\ )?
        (?:request|call|message|response|command|tool|event|input|query)\b
    | error\ (?!(?:{_NOUNS})ing\b)(?P<f>[a-z]+ing)\ [^:\n]{{1,80}}:\s
    | (?:unexpected\ |internal\ |unknown\ |unhandled\ )?(?:error|exception)
        \ (?:has\ )?(?P<e>occurred)(?:\ \(\w+\))?
        (?=$|[.:!,;]|\ (?:while|when|during|trying|with\ your)\b
          |\ [a-z]+ing\b|\ (?:in|on)\ (?:the\ |our\ )?(?:tool|function|server|request)\b)
    | there\ was\ an\ error\ (?P<g>[a-z]+ing|while|when|with)\b
    | you\ (?:do\ not|don['’]t)\ have\ (?:the\ )?(?P<h>permission|access)\b
    | you\ are\ not\ (?P<i>authori[sz]ed|authenticated|logged\ in)\b
    | (?:(?:i|we)\ (?:have\ )?)?encountered\ an\ (?P<k>error)(?=:\ |\ while\b|\ [a-z]+ing\b|$)
    | error\ (?P<l>al)\ [a-zé]+r\b | fehler\ (?P<m>beim)\ | erreur\ (?P<n>lors)\ d
    | erro\ (?P<o>ao)\ [a-z]+r\b | errore\ (?P<p>durante|nel)\b
    | (?:command|process)\ (?P<j>exited)\ with\ (?:exit\ )?(?:code|status)\ [1-9]
    )""",
    re.VERBOSE | re.IGNORECASE,
)

_STATUS = rf"(?: -|:)? (?:{STATUSES})"
_RAN_OUT = "(?: (?:was|has been))? (?:exceeded|reached|hit)"
_OVER = "(?: execution)? failed(?: with [^:.\\n]+)?|(?: has)? timed out|(?: was)? aborted"
_UNFIT = (
    "(?: (?:is|are|has))? (?:invalid|expired|missing|revoked|required|not (?:set|configured|valid))"
)
_ERRNOS = (
    "enoent eacces eperm eexist econnrefused econnreset etimedout enotfound eisdir enotdir enospc "
    "epipe eai_again ehostunreach"
)
_ERRNO = f"(?:{_ERRNOS.replace(' ', '|')})"
_GIVEN = (
    r"(?: or (?:invalid|missing|expired))? (?:api[ -]?key|(?:(?:access|auth|bearer) )?token|"
    r"credentials|password)(?: (?:(?:was|were) )?(?:provided|supplied|given))?"
)
_ARGUMENT = (
    r"(?: required)? (?:arguments?|parameters?|params|input|json|request|tool|method)"
    r"(?=[:. ][^\n]|$)(?: ['\"`]\S+)?"
)
# What a failure says that needs no verb of its own: its first word, and how it goes on.
_SAYINGS = (
    ("400 401 402 403 404 405 408 409 410 413 422 429 500 501 502 503 504", _STATUS),
    ("http http/1.1 http/1.0 http/2 error", rf"(?: error)? [45]\d\d:?{_STATUS}"),
    ("http", r" [45]\d\d(?=$|:\s)"),
    ("request command query tool operation execution connection", _OVER),
    ("api", rf" (?:call|request)(?:{_OVER})| rate limit{_RAN_OUT}| quota{_RAN_OUT}| key{_UNFIT}"),
    ("tool", f" call(?:{_OVER})"),
    ("tool", r" ['\"`]?[\w.-]+['\"`]? failed(?=: )"),
    ("connection", r" to \S+ failed"),
    ("database", " (?:connection|query)(?: has)? failed"),
    ("validation", " failed(?=$|: )"),
    ("max maximum", " (?:number of )?retries(?: was)? (?:exceeded|reached)"),
    ("dial", r" (?:tcp|udp) [^\n]{0,200}(?:connection refused|timeout|no such host|unreachable)"),
    ("object", r" of type \w+ is not JSON serializable"),
    ("rate", f" limit{_RAN_OUT}"),
    ("quota", _RAN_OUT),
    ("daily monthly", f" quota{_RAN_OUT}"),
    ("too", " many requests"),
    ("internal", " (?:server )?error"),
    ("server", " error"),
    ("service server", "(?: is)?(?: temporarily| currently)? (?:unavailable|overloaded|busy)"),
    ("bad", " gateway"),
    ("gateway", " time-?out"),
    ("connection", "(?: was| has been)? (?:refused|reset(?: by peer)?|lost|error)"),
    ("network", " (?:error|is unreachable)"),
    ("fetch", " failed"),
    ("socket", " hang up"),
    ("unauthorized forbidden", ""),
    ("access permission", "(?: is| was)? denied"),
    ("not", " (?:authori[sz]ed|authenticated|logged in)"),
    ("authentication authorization authorisation login", " (?:failed|required|error)"),
    ("token credentials session", _UNFIT),
    ("invalid missing expired incorrect bad", _GIVEN),
    ("invalid missing unknown", _ARGUMENT),
    ("unknown", " error"),
    ("file tool method command resource model", " not found"),
    ("no", " such (?:file or directory|tool)| space left on device"),
    ("no", " (?:api key|token|credentials)(?: (?:was|were))? (?:provided|supplied|given)"),
    ("resource", " exhausted"),
    ("insufficient", " (?:permissions|privileges|scope)"),
    ("timeout timed", "(?: out| error| exceeded)?(?!:)"),
    ("unexpected", r" token \S+ in json(?: at position \d+)?| end of (?:json )?input"),
    ("something", " went wrong"),
    ("out", " of memory"),
    ("disk", "(?: is)? full"),
    ("division", " by zero"),
    (_ERRNOS, "(?=:)"),
    ("connect getaddrinfo spawn open read write", rf"(?: \S+)? {_ERRNO}\b(?: \S+)?"),
)
# And then it stops, or gives its reason.
_THEN = (
    r"(?=\s*$|[.!:]\s|[.!]$| \(|\n|, (?:please|try|retry|wait)| - | after \d| (?:while|because)\b"
    r"| (?:for|by|to) (?:url|user|project|tool|model|the server|your|this|\S*[.:/'\"`]\S))"
)
_SAYING = {
    word: "|".join(rest for words, rest in _SAYINGS if word in words.split())
    for words, _ in _SAYINGS
    for word in words.split()
}
_LABELS = _words(
    "error exception fatal internal unexpected unknown network api http database server tool "
    "runtime system json parse syntax validation input output mcp sql query execution connection "
    "request authentication rpc upstream panic fehler erreur errore erro fout ошибка"
)
_ABROAD = ("错", "錯", "エ", "오")  # No space stands between the words.
_FAILING = _words(
    "failed unable i we could couldn't couldn’t can can't can’t cannot error exception unexpected "
    "internal unknown unhandled there you command process encountered fehler erreur erro errore"
)
_SKIPPED = ("a", "an", "the", "your", "sorry,", "oops!", "oops,", "unfortunately,", "i'm", "but")

# A count or a field of a report; 404 and its like are no counts.
_REPORT = re.compile(
    r"[^:\n]{1,60}\s?:\s+(?:(?:(?![45]\d\d\b)\d+|no|-)\s*(?:$|[,;.\n(/|%])|(?:none|n/a|null|false)\b"
    r"|[±~≈]\s?\d|\d+ of \d|\d+ (?!(?:milli)?seconds)[a-z]+s\s*(?:$|[,;.\n]))",
    re.IGNORECASE,
)
_LESSON = re.compile(
    r"(?:what|how|why|when|where|which|causes?|explained)\b"
    r"|(?:an?|the)\ (?:\w+\ )?(?:guide|introduction|overview|history|memoir|novel|tutorial)\b",
    re.IGNORECASE | re.VERBOSE,
)
_QUESTION = re.compile(r"[^.!:;\n]{0,120}\?(?:\s|$)")
_CLAUSE = re.compile(r"[:.,;(\n]|\ (?:because|since|as|that|if|when|while|whether)\ ")
_DEFINES = re.compile(r"\b(?:is|was|are|were|means?|refers|occurs|happens|indicates)\b")
_SMALL = _words("a an and at by for from in of on or the to with")
# What titles hardly ever say and messages do.
_TROUBLE = re.compile(
    r"\b(?:no|not|in\w+|un\w+|fail\w*|denied|refused|forbidden|missing|exceeded|expired|time\w*|"
    r"error|exception|required|already|exists?|closed|reset|disabled|blocked|bad|illegal|too|lost|"
    r"wrong|conflict|duplicate|rejected|null|corrupt\w*|limit|quota|permission|access|server|"
    r"please|must|cannot)\b",
    re.IGNORECASE,
)


def reads_as_error(text: str) -> bool:
    """Whether somebody who reads the text would say that the call has failed."""
    if text.startswith("Traceback (most"):
        return True
    if not text:
        return False
    if text[0] in _BEGINS_WHOLE and _WHOLE.match(text):
        return True
    if len(text) > _LONGEST or text.count("\n") >= _MOST_LINES:
        return False
    start, has_level = 0, False
    if text[0] in _SIGNS and (dressed := _DECORATION.match(text)):
        start, has_level = dressed.end(), bool(dressed["level"])
    if not has_level and not _fails(text, start):
        return False
    return not _is_log(text) and not _REPORT.match(text, start)


def _fails(text: str, start: int) -> bool:
    """Most texts are told by their first word to be something else."""
    words = text[start : start + 80].split(maxsplit=5)
    while len(words) > 1 and words[0].lower() in _SKIPPED:
        start = text.index(words[1], start + len(words[0]))
        words = words[1:]
    if not words:
        return False
    word = words[0].rstrip(":.,!*").lower()
    if (word in _LABELS or word[:1] in _ABROAD) and (found := _LABEL.match(text, start)):
        return not _is_title(text[found.end() :])
    if word.endswith(("error", "exception")) and (found := _EXCEPTION.match(text, start)):
        return not _LESSON.match(text, found.end())
    if word in _FAILING and (found := _FAILS.match(text, start)):
        return _is_sentence(text, found)
    return word in _SAYING and _is_saying(text, start, word)


def _is_sentence(text: str, found: re.Match[str]) -> bool:
    """Whether the verb is written as in a sentence, not as in a title, and nothing is defined."""
    verb, rest = found[found.lastgroup or 0], text[found.end() :]
    if not verb.islower() and not verb.isupper():
        return False
    # Armies and strikers fail too, at what no program does.
    told = found.lastgroup == "a" and not _PROGRAM_DOES.fullmatch(verb) and _STORY.match(rest)
    return not told and not _is_about(rest)


def _is_saying(text: str, start: int, word: str) -> bool:
    found = _saying(word).match(text, start + len(word))
    if not found:
        return False
    rest = text[found.end() :].lstrip(":.! ")
    return not _is_title(rest) and not _QUESTION.match(text, start)


@cache
def _saying(word: str) -> re.Pattern[str]:
    return re.compile(f"(?:{_SAYING[word]}){_THEN}", re.IGNORECASE)


def _is_title(words: str) -> bool:
    """Whether it is the name of a book or the heading of a lesson."""
    if _LESSON.match(words):
        return True
    head = re.split(r"[,.;:(\n]|\ [-–—]\ ", words, maxsplit=1)[0].split()
    names = [word for word in head if word.lower() not in _SMALL]
    return (
        len(head) > 1
        and any(not word.isupper() for word in names)
        and all(word[0].isupper() for word in names)
        and not _TROUBLE.search(words)
    )


def _is_about(sentence: str) -> bool:
    """Whether it asks, or says what something is."""
    clause = _CLAUSE.split(sentence, maxsplit=1)[0]
    return bool(_QUESTION.match(sentence) or _DEFINES.search(clause))


def _is_log(text: str) -> bool:
    """Whether several lines tell of their level, as in a log or in what a compiler says."""
    return "\n" in text and sum(bool(_LEVEL.match(line)) for line in text.split("\n")) > 1
