"""Error messages, which rule AB201 must find, and texts about errors, which it must not."""

from __future__ import annotations

import time

import pytest

from answerback import validate

ERROR_MESSAGES = """
Error: 401 Unauthorized
Error: no such city
Error: 404
Error: Not Found
Error: Access Denied
Error: Invalid Credentials
Error: Request Entity Too Large
Error: undefined
Error (500): upstream is down
Error -32603: Internal error
ERROR: relation "users" does not exist
error: pathspec 'main' did not match any file(s) known to git
Error : la ville est inconnue
Error: city is a required argument
Error: Timesheet 17 not found. Use timesheet_list to find one.
Error: https://api.example.com/v1?q=1 answered 502
Fatal error: out of disk
Database error: deadlock detected
Internal error: index out of range
API error: model is overloaded
MCP error -32602: Unknown tool
Error executing tool add: division by zero
Error executing tool bad
Error calling tool 'search': timeout
Error fetching user 7: timeout
Error fetching weather data
Error while reading settings.json
Error parsing JSON at line 3
Error annotating picture 9: too dark
Error handling request: body is empty
Exception: boom
ValueError: x must be positive
java.lang.IllegalArgumentException: x must be positive
requests.exceptions.ConnectionError: no route to host
[ERROR] disk full
[error] no such user
❌ Error: no such user
❌ Failed to deploy web-1
🚫 Access denied
⚠️ Error: the token has expired
**Error**: no such user
**Error:** no such user
<error>no such user</error>
An error occurred
An unexpected error occurred while processing your request.
Unknown error
Something went wrong
Something went wrong. Please try again.
Failed to fetch projects: connection timed out after 30 s
Failed to open file.
FAILED TO CONNECT
Failed to start: the port is in use
Failed to load page. Retry?
Failed to fetch https://x.org/a?b=1
Unable to connect to server
Unable to reach the weather service.
I was unable to access the file.
Could not connect to database
Couldn't open notes.txt
Could not find user 42
Cannot read properties of undefined (reading 'id')
Can't resolve host db.example.com
Rate limit exceeded
Rate limit exceeded. Try again in 20 seconds.
Rate limit exceeded: 100 requests a minute
Rate limit exceeded, please wait
API rate limit exceeded for user 77
Too Many Requests
Monthly quota exceeded
Internal Server Error
500 Internal Server Error
HTTP error 404: Not Found
HTTP 503 Service Unavailable
401 Unauthorized
403 Forbidden - you are not a member
404 Client Error: Not Found for url: https://api.example.com/x
Bad Gateway
Service temporarily unavailable
The server is currently unavailable. Please try later.
Request failed with status code 429
Request timed out after 30 seconds
The request timed out.
Connection refused
Connection reset by peer
Network error
fetch failed
connect ECONNREFUSED 127.0.0.1:5432
getaddrinfo ENOTFOUND api.example.com
ENOENT: no such file or directory, open 'a.txt'
Unauthorized
Permission denied (publickey).
Access denied to '/etc/shadow'
Not authorized
Authentication required
Invalid API key
Invalid API key provided
Invalid API key provided. You can find yours in the settings.
Missing token
Incorrect password
Your session has expired
Token expired
Invalid input: x must be positive
Missing required parameter: city
Missing required parameter 'city'
Unknown tool: wether
File not found: notes.txt
No such file or directory
No space left on device
Query failed: syntax error near FROM
Error
Error. Please try again.
Error! no such file
Error 404: page not found
Syntax error: unexpected end of file
JSON parse error: unexpected end
Unexpected token < in JSON at position 0
fatal: not a git repository
AssertionError
Fehler: Datei nicht gefunden
Erreur : fichier introuvable
Ошибка: файл не найден
Sorry, an error occurred.
Oops! Something went wrong.
There was an error processing your request.
Tool call failed
Timeout
Timed out after 30 s
You do not have permission to see this project.
You are not authorized to perform this action.
Insufficient permissions
Invalid JSON
Command exited with code 127
API key not valid. Please pass a valid one.
API key is required
No API key provided
Quota exceeded for project shop
Server is busy
Encountered an error: 403 Forbidden
I encountered an error while fetching the data: 403
I'm sorry, but I could not complete the request.
I'm unable to access the file.
Tool 'search' failed: no key
Tool search failed: no key
HTTP 404
HTTP/1.1 403 Forbidden
SQL error: no such table: users
Execution error: boom
Connection error: no route to host
rpc error: code = Unavailable desc = connection closed
Database connection failed
Connection to db.example.com failed: timeout
Validation failed: x is required
429: Too many requests
Error code: 429 - {'error': {'message': 'slow down'}}
Error - no such city
[Error: no such city]
Max retries exceeded
dial tcp 127.0.0.1:5432: connect: connection refused
panic: runtime error: index out of range [5] with length 3
'NoneType' object has no attribute 'get'
Object of type datetime is not JSON serializable
Error al obtener los datos: tiempo agotado
Fehler beim Abrufen der Daten: keine Verbindung
Erreur lors de la lecture : fichier introuvable
Erro: arquivo não encontrado
Erro ao ler o arquivo: sem permissão
错误：找不到文件
エラー: ファイルが見つかりません
오류: 파일을 찾을 수 없습니다
<!DOCTYPE html><html><head><title>503 Service Temporarily Unavailable</title></head></html>
""".strip().splitlines()

ABOUT_ERRORS = """
Error: A Memoir, by Jane Doe
Error: The Movie (2011)
Error: Stories From the Help Desk
Error: what it means and how to report it
Error: 0 (none since Monday)
Error: none
Error handling in Python: a short guide
Error handling: return the error last
Error Handling in Go
Error reporting in production: three tools compared
Error logging for beginners: where to start
Error tracking dashboards: 3
Error correction codes: Reed-Solomon, Hamming
Error rate: 0.3 % over the last hour
Error budget: 99.9 %
Error bars show the standard deviation.
Error 404 is a song of 2019.
Errors: 0, warnings: 3
Errors and exceptions, chapter 8
Error messages should say what to do.
Exceptions: see chapter 8
Exception: A Novel
Exception handling in Java: try, catch, finally
TypeError: what it means, and how to fix it
Failed to Launch is a 2006 film
Failed to Launch (2006)
Failed to launch is how the press put it.
Failed to sign in? Reset your password at /reset.
Failed to find any regressions.
Failed to reproduce the bug in 20 runs.
Failed logins: 3 (all from 203.0.113.9)
Failed to deliver: 3 (of 120)
Failed states of the 20th century
Failure is an option.
Unable to Connect: Loneliness in the Digital Age
Unable to decide? Take both.
Unable to attend: Ada, Grace
Could not find any problems in 14 files.
Could not find a match; the list is complete.
Could not be better.
Couldn't agree more, she wrote.
Cannot find duplicates
Cannot open the door? Call the janitor.
Rate limit exceeded 3 times last week
Rate limit exceeded is what clients see after 100 requests.
Rate limits: 100 requests a minute
Rate limit: 100 requests a minute
Rate limit exceeded: why it happens and what to do
Internal Server Error: what a 500 means
Internal Server Error rate: 0.1 %
Internal server errors went down by 40 %.
404 Not Found means that the server has no such page.
500 Internal Server Error responses: 12
500 miles and counting
403 Forbidden Planet was showing.
Forbidden City, Beijing
Forbidden: The Story of a Book
Access Denied: A History of Banned Books
Permission denied errors: how to fix them
Connection refused: 12 (last hour)
Connection refused explained
Bad Gateway, a thriller
Service unavailable on Sundays from 2 to 4.
Not found in the catalogue: 3 titles
Invalid API keys: 0
Invalid API key messages come from the gateway.
Missing token counts as a guest.
Missing parameters get their defaults.
Unknown tool marks on a bronze blade
Unauthorized biography of a rock star
No errors found in 14 files.
No such luck.
Disk full of photographs
The build failed twice last week; it is green now.
The request timed out twice, then it worked.
Something went wrong in 1914
Out of memory and into the light
fix: Error: prefix is no longer doubled in replies
2026-01-31 12:00:00 ERROR disk full
Query: how to handle "Error: disk full"?
The log says: Error: disk full
Token expired is the reason in 80 % of the cases.
Error-free in 3 of 4 runs
Error, a short story
Error - Wikipedia
Failed: 0, passed: 12
Failed tests: a, b
Timeout: 30 seconds
Timeouts are set to 30 s.
Unauthorized access was attempted on Monday
Could not connect the dots, says critic
Cannot open on Mondays: museum hours
Cannot get enough of your love
Can't stop the feeling
Unable to run for office, he wrote a book.
Couldn't load more pictures than 3 at once
An error occurred 3 times in the last hour.
An error occurred in chapter 2 of the book; it is corrected below.
Command failed 3 times and then succeeded
Tool failed inspection: drill 7
Command exited with code 0
There was an error in the third act.
You are not alone
You do not have to be an expert.
Sorry, we are closed on Mondays.
Fatal Attraction (1987)
Fatal: A Novel
No token was found in 14 files.
Error: ±0.5 mm
Error: 3.2e-5 after 12 iterations
Server error: 12 of 4000 requests
Validation error: 4.1 %
error: false
Permission denied: 3 users
Failed to score in five games, the striker was benched.
Failed to pass the Senate, the bill returns to committee.
Failed to take the city, the army withdrew in 1683.
I encountered an error in chapter 3 of your book.
Encountered an errorless version at last
HTTP 404 is what a server says that has no such page.
Tool use failed states of the past: an essay
Validation failed 3 times and then passed
Validation failed: 3, passed: 12
Connection to nature failed nobody
Max retries: 3
Error code: E0308
Error codes: 404, 500
Panic: A Novel
panic buttons are red
dial tcp is a function of Go's
Fehler: Ein Roman
'Object' has no attributes of its own
Object of type A is a subclass of B
<html><head><title>Not Found, a novel</title></head></html>
<html><head><title>404 Not Found explained</title></head></html>
1 validation error was fixed
""".strip().splitlines()

_LONG_TEXTS_ABOUT_ERRORS = [
    "[ERROR] disk full\n[INFO] cleaned up\n[INFO] done",
    "error: a.c:3: expected ;\nwarning: a.c:9: unused x\nnote: 1 error",
    "Error: a.txt\nError: b.txt\nError: c.txt",
    "401 Unauthorized: no token was sent\n403 Forbidden: the token lacks the scope",
    "Permission denied: 3 users\nPermission granted: 14 users",
    "error: false\nlevel: info\nretries: 3",
    "Failed to open file\n\n" + "This page says what to do about it.\n" * 7,
    "Unable to connect to server\n" + "The cable may be loose. " * 40,
]


def findings(text: str) -> list[str]:
    return [each.rule for each in validate({"content": [{"type": "text", "text": text}]})]


@pytest.mark.parametrize("text", ERROR_MESSAGES)
def test_an_error_message_without_is_error_is_found(text: str) -> None:
    assert findings(text) == ["AB201"]


@pytest.mark.parametrize(
    "text", [*ABOUT_ERRORS, *_LONG_TEXTS_ABOUT_ERRORS], ids=lambda text: text[:40]
)
def test_a_text_about_errors_is_not_taken_for_an_error_message(text: str) -> None:
    assert findings(text) == []


@pytest.mark.parametrize("text", ERROR_MESSAGES)
def test_an_error_message_with_is_error_is_not_found(text: str) -> None:
    found = validate({"content": [{"type": "text", "text": text}], "isError": True})

    assert "AB201" not in {each.rule for each in found}


@pytest.mark.parametrize("text", ["Error: ", "error " * 99, "[error] " * 70, "a" * 599, "❌" * 590])
def test_a_repetitive_text_is_checked_quickly(text: str) -> None:
    started = time.process_time()

    for _ in range(100):
        findings(text)

    assert time.process_time() - started < 5
