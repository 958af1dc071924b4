"""`add` on FastAPI, in a coroutine and in a thread."""

from __future__ import annotations

from fastapi import FastAPI
from pydantic import BaseModel


class Arguments(BaseModel):
    x: int
    y: int


class Result(BaseModel):
    result: int


app = FastAPI()


@app.post("/add_async")
async def add_async(arguments: Arguments) -> Result:
    """Add two numbers in a coroutine."""
    return Result(result=arguments.x + arguments.y)


@app.post("/add")
def add(arguments: Arguments) -> Result:
    """Add two numbers in a thread."""
    return Result(result=arguments.x + arguments.y)
