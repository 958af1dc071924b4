"""Matching URIs: the examples of RFC 6570, expanding and matching back, and hostile URIs."""

from __future__ import annotations

import re
import time
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from answerback.tools.resource import UriTemplate

RESERVED = ":/?#[]@!$&'()*+,;="


@pytest.mark.parametrize(
    ("template", "uri", "values"),
    [
        ("{var}", "value", {"var": "value"}),
        ("{hello}", "Hello%20World%21", {"hello": "Hello World!"}),
        ("{+hello}", "Hello%20World!", {"hello": "Hello World!"}),
        ("{+path}/here", "/foo/bar/here", {"path": "/foo/bar"}),
        ("here?ref={+path}", "here?ref=/foo/bar", {"path": "/foo/bar"}),
        ("X{#hello}", "X#Hello%20World!", {"hello": "Hello World!"}),
        ("map?{x,y}", "map?1024,768", {"x": "1024", "y": "768"}),
        (
            "{+x,hello,y}",
            "1024,Hello%20World!,768",
            {"x": "1024", "hello": "Hello World!", "y": "768"},
        ),
        ("X{.var}", "X.value", {"var": "value"}),
        ("X{.x,y}", "X.1024.768", {"x": "1024", "y": "768"}),
        ("{/var}", "/value", {"var": "value"}),
        ("{/var,x}/here", "/value/1024/here", {"var": "value", "x": "1024"}),
        ("{;x,y}", ";x=1024;y=768", {"x": "1024", "y": "768"}),
        ("{;x,y,empty}", ";x=1024;y=768;empty", {"x": "1024", "y": "768", "empty": ""}),
        ("{?x,y}", "?x=1024&y=768", {"x": "1024", "y": "768"}),
        ("{?x,y,empty}", "?x=1024&y=768&empty=", {"x": "1024", "y": "768", "empty": ""}),
        ("?fixed=yes{&x}", "?fixed=yes&x=1024", {"x": "1024"}),
        ("{&x,y,empty}", "&x=1024&y=768&empty=", {"x": "1024", "y": "768", "empty": ""}),
        ("{var:3}", "val", {"var": "val"}),
        ("{var:30}", "value", {"var": "value"}),
        ("{list*}", "red,green,blue", {"list": ["red", "green", "blue"]}),
        ("{+list*}", "red,green,blue", {"list": ["red", "green", "blue"]}),
        ("{/list*}", "/red/green/blue", {"list": ["red", "green", "blue"]}),
        ("X{.list*}", "X.red.green.blue", {"list": ["red", "green", "blue"]}),
        ("{?list*}", "?list=red&list=green&list=blue", {"list": ["red", "green", "blue"]}),
        ("{;list*}", ";list=red;list=green;list=blue", {"list": ["red", "green", "blue"]}),
        (
            "{/list*,path:4}",
            "/red/green/blue/%2Ffoo",
            {"list": ["red", "green", "blue"], "path": "/foo"},
        ),
    ],
)
def test_the_examples_of_rfc_6570_are_matched(
    template: str, uri: str, values: dict[str, Any]
) -> None:
    assert UriTemplate(template).match(uri) == values


@pytest.mark.parametrize(
    ("template", "uri", "values"),
    [
        ("a://{/path*}", "a:///x.txt/b,c", {"path": ["x.txt", "b,c"]}),
        ("a://{+path*}", "a://x.txt,b/c", {"path": ["x.txt", "b/c"]}),
        ("a://{path*}", "a://x/y.txt", {"path": ["x/y.txt"]}),
        ("a://{dir}/{path*}.md{?q}", "a://b/c/d.md?q=1", {"dir": "b", "path": ["c/d"], "q": "1"}),
        ("a://{+path}{?q}", "a://b/c?q=1", {"path": "b/c", "q": "1"}),
        ("a://{+path}{;q}", "a://b/c;q=1", {"path": "b/c", "q": "1"}),
        ("a://x{?a}{&b}", "a://x?a=1&b=2", {"a": "1", "b": "2"}),
        ("a://x{?a}{&b}", "a://x?b=2", {"b": "2"}),
        ("a://x{?a,b}", "a://x", {}),
        ("a://x{?a,b}", "a://x?c=3&a=1", {"a": "1"}),
        ("a://x{?a}", "a://x?a=1+1%2B1;b", {"a": "1+1+1;b"}),
        ("a://x{?a}", "a://x?a=%C3%A9%00", {"a": "é\0"}),
        ("a://{_pairs0}{?b}", "a://x?b=1", {"_pairs0": "x", "b": "1"}),
        ("a://{+dir}/{name}", "a://b/c/d", {"dir": "b/c", "name": "d"}),
        (
            "a://{year}-{month}-{day}",
            "a://2026-11-15",
            {"year": "2026", "month": "11", "day": "15"},
        ),
        ("a://{x}", "a://b/c", None),
        ("a://{x}", "a://", None),
        ("a://{x}", "a://%FF", None),
        ("a://x{?a}", "a://x?a=%ff", None),
        ("a://{x:2}", "a://abc", None),
        ("a://{x}", "A://b", None),
        ("a://{x}.txt", "a://b", None),
        ("a.b/{x}", "aXb/c", None),
    ],
)
def test_only_uris_that_a_template_can_expand_to_are_matched(
    template: str, uri: str, values: dict[str, Any] | None
) -> None:
    assert UriTemplate(template).match(uri) == values


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "}",
        "{a",
        "a}",
        "{}",
        "{a}{a}",
        "{a,}",
        "{!a}",
        "{=a}",
        "{|a}",
        "{a:0}",
        "{a:x}",
        "{a**}",
        "{{a}}",
        "{a}{",
        "{1a}",
        "{a,a}",
        "{?a}{&a}",
        "{a-b}",
        "{a:12345}",
    ],
)
def test_a_malformed_template_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(repr(text))):
        UriTemplate(text)


def expand(template: str, values: dict[str, Any]) -> str:
    """Expand a template as RFC 6570 does, as far as the test below needs it."""

    def expression(found: re.Match[str]) -> str:
        operator, names = found.group(1), found.group(2).split(",")
        prefix, separator, named, safe = {
            "": ("", ",", False, ""),
            "+": ("", ",", False, RESERVED),
            "#": ("#", ",", False, RESERVED),
            ".": (".", ".", False, ""),
            "/": ("/", "/", False, ""),
            ";": (";", ";", True, ""),
            "?": ("?", "&", True, ""),
            "&": ("&", "&", True, ""),
        }[operator]
        parts: list[str] = []
        for each in names:
            name = each.rstrip("*")
            found_value = values[name]
            for value in found_value if isinstance(found_value, list) else [found_value]:
                encoded = quote(value, safe="-._~" + safe)
                empty = "" if operator == ";" else "="
                parts.append(
                    f"{name}={encoded}" if encoded and named else name + empty if named else encoded
                )
        return prefix + separator.join(parts)

    return re.sub(r"\{([+#./;?&]?)([^{}]*)\}", expression, template)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


@settings(max_examples=400, derandomize=True, deadline=None)
@given(
    st.sampled_from(
        [
            "x://{a}",
            "x://{a}/{b}",
            "x://{a,b}",
            "x://{a}{/b}",
            "x://{a}{?b}",
            "x://{a}{?b,c}",
            "x://{a}{?b}{&c}",
            "x://{a}{;b,c}",
            "x://h{/a,b}{?c}",
            "x://h{/l*}",
            "x://h/{l*}",
            "x://h{?l*}",
            "x://h{;l*}",
            "x://h{/l*}{?a}",
        ]
    ),
    st.fixed_dictionaries({"a": TEXTS, "b": TEXTS, "c": TEXTS, "l": st.lists(TEXTS, min_size=1)}),
)
def test_matching_an_expanded_template_returns_its_values(
    template: str, values: dict[str, Any]
) -> None:
    names = UriTemplate(template).variables

    assert UriTemplate(template).match(expand(template, values)) == {n: values[n] for n in names}


@settings(max_examples=300, derandomize=True, deadline=None)
@given(st.text(max_size=40), st.text("{}+*:,?&;#./ab", max_size=20))
def test_any_uri_can_be_matched_against_any_template(uri: str, text: str) -> None:
    try:
        template = UriTemplate(text)
    except ValueError:
        return

    assert isinstance(template.match(uri), dict | None)


@pytest.mark.parametrize(
    "template",
    [
        "x://{+a*}!",
        "x://{+a}{+b}{+c}!",
        "x://{a}{b}{c}{d}!",
        "x://{+a}/{+b}/{+c}!",
        "x://{+a}/{+b}.txt",
        "x://{a}-{b}-{c}-{d}-{e}!",
        "x://{a*}{b*}!",
        "x://{a*}/{b*}/{c}!",
        "x://{/a*}/{b}/{+c}!",
        "x://{.a*}.{b}.x",
        "x://{+a,b,c}!",
        "x://{#a,b}!",
        "x://{?a}{&b}{&c}!",
        "x://{;a}{;b}!",
    ],
)
def test_no_uri_takes_long_to_match(template: str) -> None:
    """Clients choose the URI, so none may keep the server busy."""
    compiled = UriTemplate(template)
    began = time.process_time()

    for unit in ("a", "-", "/", ",", ".", "!x", "a,", "/a", "%", "%41", "?&", ";", "#"):
        for length in (50, 95, 290, 3000, 60_000, 1_000_000):
            compiled.match("x://" + unit * (length // len(unit)))

    assert time.process_time() - began < 10
