def half(number: int) -> float:
    return number / 2
