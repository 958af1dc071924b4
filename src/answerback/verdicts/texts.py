"""Recognises texts that say that a call failed.

Few texts are certain: a traceback, a framework's fixed wording, an exception's line. Prose is at
most suspected, because logs, titles and search results are about errors too.
"""

from __future__ import annotations

import re
from functools import cache

# The reason phrases of HTTP errors.
STATUSES = (
    "Bad Request|Unauthorized|Payment Required|Forbidden|Not Found|Method Not Allowed|Conflict|"
    "Request Time-?out|Gone|(?:Payload|Content) Too Large|Unprocessable (?:Entity|Content)|"
    "Too Many Requests|Client Error|Server Error|Internal Server Error|Not Implemented|"
    "Bad Gateway|Service Unavailable|Gateway Time-?out"
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_MAX_LENGTH = 600
_MAX_LINES = 7  # An error message has a few lines at most; a document has more.

# Decoration before the first word: an emoji, a level in brackets, or asterisks for bold.
_DECORATION_STARTS = "❌✖✗✘⛔🚫⚠🛑🔴[<*"
_DECORATION = re.compile(
    r"(?:[❌✖✗✘⛔🚫⚠🛑🔴]\ufe0f?\s*)*"
    r"(?P<level>\[(?:error|fatal|exception)\]:?\s*|<error>\s*)?(?:\[(?=Error: )|\*{0,2})",
    re.IGNORECASE,
)
_LEVEL = re.compile(
    r"\W{0,3}(?:error|fatal|warn(?:ing)?|info|note|debug|trace)\b\W|[45]\d\d [A-Z][a-z]+",
    re.IGNORECASE,
)
# Error pages from gateways, and messages from Python and pydantic; their first words are not
# typical of errors.
_KNOWN_MESSAGE = re.compile(
    rf"""<(?:!doctype\ html|html)\b.{{0,300}}?<title>\s*(?:[45]\d\d\s(?:-\s)?)?
        (?:{STATUSES.replace(" ", "[ ]")}|Service[ ]Temporarily[ ]Unavailable
          |Authorization[ ]Required)\s*</title>
    | '\w+'\ object\ (?:has\ no\ attribute\ '|is\ not\ (?:iterable|subscriptable|callable))
    | \d+\ validation\ errors?\ for\ \S+\n
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_KNOWN_STARTS = "<'0123456789"

# A label such as `Error:`, with the message after it.
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

# Verbs for things that a program does and can fail to do.
_VERBS = (
    "access|allocate|analy[sz]e|authenticate|clone|commit|communicate|compile|"
    "complete|connect(?= (?:to|with)\\b|[.:!]|$)|contact|convert|copy|create|decode|decrypt|"
    "delete|deploy|deseriali[sz]e|"
    "download|encode|establish|evaluate|execute|export|extract|fetch|generate|import|"
    "initiali[sz]e|insert|install|invoke|load|locate|log in|mount|obtain|open(?! on )|parse|"
    "perform|process|publish|query|reach|read|register|remove|rename|render|resolve|retrieve|"
    "save|scrape|send|start|submit|sync|transcribe|translate|update|upload|validate|verify|"
    "write|find"
)
_VERB_STEMS = (
    "access|add|allocat|analy[sz]|apply|authenticat|call|clon|commit|communicat|compil|complet|"
    "connect|contact|convert|copy|creat|decod|decrypt|delet|deploy|download|encod|establish|"
    "evaluat|execut|export|extract|fetch|generat|gett|import|initiali[sz]|insert|install|invok|"
    "launch|list|load|mak|mov|obtain|open|pars|perform|process|publish|query|reach|read|register|"
    "remov|renam|render|resolv|retriev|runn|sav|scrap|search|send|start|stopp|submitt|sync|"
    "transcrib|translat|updat|upload|validat|verify|writ"
)
# `error handling` is a topic; `error annotating page 3:` is a message.
_ERROR_TOPICS = (
    "budget|check|cod|correct|detect|estimat|handl|logg|messag|monitor|rat|report|track|trapp"
)
# `Could not find any problems` is a result, not a failure.
_OBJECTS_OF_SEARCH = (
    "any|anything|an?|all|evidence|signs?|further|more|other|such|problems?|errors?|issues?|"
    "results?|match(?:es)?|differences?|duplicates?|vulnerabilit\\w+|bugs?|proof|traces?"
)
_PROGRAM_VERB = re.compile(_VERBS, re.IGNORECASE)
_PROSE = re.compile(r"[^.:;!\n]{0,80}, (?:the|he|she|they|it|his|her|its|their)\b")
_FAILURE_CLAUSE = re.compile(
    rf"""(?:
      failed\ to\ (?!(?:find|detect|identify|spot|see)\ (?:{_OBJECTS_OF_SEARCH})\b|reproduce\b)
        (?P<a>[a-z]+)\b
    | (?:(?:i\ (?:am|was)\ |we\ (?:are|were)\ )?unable\ to
        |(?:(?:i|we)\ )?could(?:\ not|n['’]t)|can(?:\ ?not|['’]t))
        \ (?:be\ )?(?P<b>{_VERBS.replace(" ", "[ ]")})\b(?!\ (?:{_OBJECTS_OF_SEARCH})\b)
    | error\ (?:while\ |when\ )?(?P<c>(?:{_VERB_STEMS})ing)\b
    | error\ (?P<d>handling)\ (?:the\ |your\ )?
        (?:request|call|message|response|command|tool|event|input|query)\b
    | error\ (?!(?:{_ERROR_TOPICS})ing\b)(?P<f>[a-z]+ing)\ [^:\n]{{1,80}}:\s
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
_EXCEEDED = "(?: (?:was|has been))? (?:exceeded|reached|hit)"
_FAILED = "(?: execution)? failed(?: with [^:.\\n]+)?|(?: has)? timed out|(?: was)? aborted"
_INVALID = (
    "(?: (?:is|are|has))? (?:invalid|expired|missing|revoked|required|not (?:set|configured|valid))"
)
_ERRNOS = (
    "enoent eacces eperm eexist econnrefused econnreset etimedout enotfound eisdir enotdir enospc "
    "epipe eai_again ehostunreach"
)
_ERRNO = f"(?:{_ERRNOS.replace(' ', '|')})"
_CREDENTIAL = (
    r"(?: or (?:invalid|missing|expired))? (?:api[ -]?key|(?:(?:access|auth|bearer) )?token|"
    r"credentials|password)(?: (?:(?:was|were) )?(?:provided|supplied|given))?"
)
_ARGUMENT = (
    r"(?: required)? (?:arguments?|parameters?|params|input|json|request|tool|method)"
    r"(?=[:. ][^\n]|$)(?: ['\"`]\S+)?"
)
# Error messages with fixed wording: the first word, and a pattern for the rest.
_PHRASES = (
    ("400 401 402 403 404 405 408 409 410 413 422 429 500 501 502 503 504", _STATUS),
    ("http http/1.1 http/1.0 http/2 error", rf"(?: error)? [45]\d\d:?{_STATUS}"),
    ("http", r" [45]\d\d(?=$|:\s)"),
    ("request command query tool operation execution connection", _FAILED),
    (
        "api",
        rf" (?:call|request)(?:{_FAILED})| rate limit{_EXCEEDED}| quota{_EXCEEDED}| key{_INVALID}",
    ),
    ("tool", f" call(?:{_FAILED})"),
    ("tool", r" ['\"`]?[\w.-]+['\"`]? failed(?=: )"),
    ("connection", r" to \S+ failed"),
    ("database", " (?:connection|query)(?: has)? failed"),
    ("validation", " failed(?=$|: )"),
    ("max maximum", " (?:number of )?retries(?: was)? (?:exceeded|reached)"),
    ("dial", r" (?:tcp|udp) [^\n]{0,200}(?:connection refused|timeout|no such host|unreachable)"),
    ("object", r" of type \w+ is not JSON serializable"),
    ("rate", f" limit{_EXCEEDED}"),
    ("quota", _EXCEEDED),
    ("daily monthly", f" quota{_EXCEEDED}"),
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
    ("token credentials session", _INVALID),
    ("invalid missing expired incorrect bad", _CREDENTIAL),
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
# After such a phrase, the message ends or gives a reason.
_PHRASE_END = (
    r"(?=\s*$|[.!:]\s|[.!]$| \(|\n|, (?:please|try|retry|wait)| - | after \d| (?:while|because)\b"
    r"| (?:for|by|to) (?:url|user|project|tool|model|the server|your|this|\S*[.:/'\"`]\S))"
)
_PHRASES_BY_WORD = {
    word: "|".join(rest for words, rest in _PHRASES if word in words.split())
    for words, _ in _PHRASES
    for word in words.split()
}
_LABEL_WORDS = _words(
    "error exception fatal internal unexpected unknown network api http database server tool "
    "runtime system json parse syntax validation input output mcp sql query execution connection "
    "request authentication rpc upstream panic fehler erreur errore erro fout ошибка"
)
_UNSPACED_STARTS = ("错", "錯", "エ", "오")  # No space follows the label.
_CLAUSE_WORDS = _words(
    "failed unable i we could couldn't couldn’t can can't can’t cannot error exception unexpected "
    "internal unknown unhandled there you command process encountered fehler erreur erro errore"
)
_FILLERS = ("a", "an", "the", "your", "sorry,", "oops!", "oops,", "unfortunately,", "i'm", "but")

# A count or a field in a report, such as `Errors: 3`; a number such as 404 is a status.
_COUNT = re.compile(
    r"[^:\n]{1,60}\s?:\s+(?:(?:(?![45]\d\d\b)\d+|no|-)\s*(?:$|[,;.\n(/|%])|(?:none|n/a|null|false)\b"
    r"|[±~≈]\s?\d|\d+ of \d|\d+ (?!(?:milli)?seconds)[a-z]+s\s*(?:$|[,;.\n]))",
    re.IGNORECASE,
)
_HEADING = re.compile(
    r"(?:what|how|why|when|where|which|causes?|explained)\b"
    r"|(?:an?|the)\ (?:\w+\ )?(?:guide|introduction|overview|history|memoir|novel|tutorial)\b",
    re.IGNORECASE | re.VERBOSE,
)
_QUESTION = re.compile(r"[^.!:;\n]{0,120}\?(?:\s|$)")
_CLAUSE_END = re.compile(r"[:.,;(\n]|\ (?:because|since|as|that|if|when|while|whether)\ ")
_DEFINITION_VERB = re.compile(r"\b(?:is|was|are|were|means?|refers|occurs|happens|indicates)\b")
_SMALL_WORDS = _words("a an and at by for from in of on or the to with")
# Words that are common in error messages and rare in titles.
_ERROR_WORDS = re.compile(
    r"\b(?:no|not|in\w+|un\w+|fail\w*|denied|refused|forbidden|missing|exceeded|expired|time\w*|"
    r"error|exception|required|already|exists?|closed|reset|disabled|blocked|bad|illegal|too|lost|"
    r"wrong|conflict|duplicate|rejected|null|corrupt\w*|limit|quota|permission|access|server|"
    r"please|must|cannot)\b",
    re.IGNORECASE,
)


_TRACEBACK = "Traceback (most recent call last):"
_FRAMEWORK_STARTS = ("Error executing tool ", "Error calling tool ")
# An exception's class and its message, in one line; `Error: …` alone is a common label.
_EXCEPTION_LINE = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Z]\w+(?:Error|Exception): (?=\S)")
_EXCEPTION_DEFINITION = re.compile(r"(?:an?|the)\b.*\b(?:raised|thrown|occurs|happens|signals)\b")
_MAX_EXCEPTION_LINE = 300


def failure_line(text: str) -> str | None:
    """Return the message of a text that can only be a failure; None for any other text.

    It is a traceback that ends with its exception, a framework's wording, or an exception's line.
    """
    text = text.strip()
    if text.startswith(_FRAMEWORK_STARTS):
        return text if ":" in text or text.count(" ") <= 4 else None
    if text.startswith(_TRACEBACK):
        text = text.rpartition("\n")[2].strip()
        return text if _EXCEPTION.match(text) else None
    if len(text) > _MAX_EXCEPTION_LINE or "\n" in text:
        return None
    found = _EXCEPTION_LINE.match(text)
    if found is None:
        return None
    rest = text[found.end() :]
    is_prose = _is_title(rest) or _EXCEPTION_DEFINITION.match(rest) or _QUESTION.match(text)
    return None if is_prose else text


def is_failure_text(text: str) -> bool:
    """Return whether the text is the error message of a failed call."""
    if text.startswith("Traceback (most"):
        return True
    if not text:
        return False
    if text[0] in _KNOWN_STARTS and _KNOWN_MESSAGE.match(text):
        return True
    if len(text) > _MAX_LENGTH or text.count("\n") >= _MAX_LINES:
        return False
    start, has_level = 0, False
    if text[0] in _DECORATION_STARTS and (decoration := _DECORATION.match(text)):
        start, has_level = decoration.end(), bool(decoration["level"])
    if not has_level and not _begins_like_error(text, start):
        return False
    return not _is_log(text) and not _COUNT.match(text, start)


def _begins_like_error(text: str, start: int) -> bool:
    """Return whether the text begins like an error message; the first word usually decides."""
    words = text[start : start + 80].split(maxsplit=5)
    while len(words) > 1 and words[0].lower() in _FILLERS:
        start = text.index(words[1], start + len(words[0]))
        words = words[1:]
    if not words:
        return False
    word = words[0].rstrip(":.,!*").lower()
    if (word in _LABEL_WORDS or word[:1] in _UNSPACED_STARTS) and (
        found := _LABEL.match(text, start)
    ):
        return not _is_title(text[found.end() :])
    if word.endswith(("error", "exception")) and (found := _EXCEPTION.match(text, start)):
        return not _HEADING.match(text, found.end())
    if word in _CLAUSE_WORDS and (found := _FAILURE_CLAUSE.match(text, start)):
        return _is_failure_sentence(text, found)
    return word in _PHRASES_BY_WORD and _is_failure_phrase(text, start, word)


def _is_failure_sentence(text: str, found: re.Match[str]) -> bool:
    """Return whether the match is in a sentence, not in a title, a question or a definition."""
    verb, rest = found[found.lastgroup or 0], text[found.end() :]
    if not verb.islower() and not verb.isupper():
        return False
    # "failed to" with a verb that no program performs is prose: "Failed to score, the team …".
    is_prose = found.lastgroup == "a" and not _PROGRAM_VERB.fullmatch(verb) and _PROSE.match(rest)
    return not is_prose and not _is_question_or_definition(rest)


def _is_failure_phrase(text: str, start: int, word: str) -> bool:
    found = _phrase_pattern(word).match(text, start + len(word))
    if not found:
        return False
    rest = text[found.end() :].lstrip(":.! ")
    return not _is_title(rest) and not _QUESTION.match(text, start)


@cache
def _phrase_pattern(word: str) -> re.Pattern[str]:
    return re.compile(f"(?:{_PHRASES_BY_WORD[word]}){_PHRASE_END}", re.IGNORECASE)


def _is_title(words: str) -> bool:
    """Return whether the words are the title of a book or an article."""
    if _HEADING.match(words):
        return True
    head = re.split(r"[,.;:(\n]|\ [-–—]\ ", words, maxsplit=1)[0].split()
    names = [word for word in head if word.lower() not in _SMALL_WORDS]
    return (
        len(head) > 1
        and any(not word.isupper() for word in names)
        and all(word[0].isupper() for word in names)
        and not _ERROR_WORDS.search(words)
    )


def _is_question_or_definition(sentence: str) -> bool:
    """Return whether the sentence is a question or a definition."""
    clause = _CLAUSE_END.split(sentence, maxsplit=1)[0]
    return bool(_QUESTION.match(sentence) or _DEFINITION_VERB.search(clause))


def _is_log(text: str) -> bool:
    """Return whether several lines begin with a level, as in a log or compiler output."""
    return "\n" in text and sum(bool(_LEVEL.match(line)) for line in text.split("\n")) > 1
