"""The products of TM Dev Lab's shop, and what its API answers about them.

Numbers are written as Go writes them, so that the answers have the original's bytes.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qs, urlsplit

PRODUCTS = 100_000
_CATEGORIES = (
    "Electronics Books Clothing Sports Home Garden Toys Food Beauty Automotive "
    "Music Movies Games Office Health Pets Travel Tools Jewelry Baby"
)
_BRANDS = (
    "Alpha Beta Gamma Delta Epsilon Zeta Eta Theta Iota Kappa Lambda Mu Nu Xi Omicron Pi Rho "
    "Sigma Tau Upsilon Phi Chi Psi Omega Apex Nexus Vertex Zenith Nadir Flux Forge Craft Build "
    "Make Create Design Style Form Shape Mold Cast Weld Fuse Bond Link Chain Wire Mesh Weave Knit"
)
_TAGS = "sale new featured bestseller clearance limited popular exclusive"
CATEGORIES, BRANDS, TAGS = _CATEGORIES.split(), _BRANDS.split(), _TAGS.split()
TAX, SHIPPING, DISCOUNT, DISCOUNT_FROM = 0.085, 5.99, 0.10, 100.0


def product(id: int) -> dict[str, Any]:
    i = id - 1
    category, brand = CATEGORIES[i % len(CATEGORIES)], BRANDS[i % len(BRANDS)]
    return {
        "id": id,
        "sku": f"SKU-{id:06d}",
        "name": f"{brand} {category} Item {id}",
        "category": category,
        "brand": brand,
        "price": _number(1 + (i % 99_900) / 100),
        "stock": i % 501,
        "rating": _number(1 + (i % 40) / 10),
        "tags": [TAGS[(i + j) % len(TAGS)] for j in range(2 + i % 3)],
        "weight": _number((1 + i % 100) * 0.1),
        "description": f"Quality {category} by {brand}. SKU {id:06d}.",
    }


def search(category: str, min_price: float, max_price: float, limit: int) -> dict[str, Any]:
    first = CATEGORIES.index(category) + 1
    ids = range(first, PRODUCTS + 1, len(CATEGORIES))
    found = [each for each in map(product, ids) if min_price <= each["price"] <= max_price]
    found.sort(key=lambda each: each["price"])
    return {"category": category, "total_found": len(found), "products": found[:limit]}


def calculate(user_id: str, items: list[dict[str, int]]) -> dict[str, Any]:
    subtotal = sum(product(each["product_id"])["price"] * each["quantity"] for each in items)
    has_discount = subtotal >= DISCOUNT_FROM
    tax = round(subtotal * TAX, 2)
    shipping = 0.0 if has_discount else SHIPPING
    discount = round(subtotal * DISCOUNT, 2) if has_discount else 0.0
    return {
        "order_id": f"ORD-{user_id.replace('-', '')}-{len(items)}",
        "user_id": user_id,
        "subtotal": _number(subtotal),
        "tax": _number(tax),
        "shipping": _number(shipping),
        "discount": _number(discount),
        "total": _number(subtotal + tax + shipping - discount),
        "items_count": len(items),
    }


@lru_cache(4096)
def api_answer(target: str, body: bytes) -> bytes | None:
    """The JSON for a request, which is made once and then kept; None if there is none."""
    url = urlsplit(target)
    if url.path == "/products/search":
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        prices = float(query["min_price"]), float(query["max_price"])
        return _encoded(search(query["category"], *prices, int(query["limit"])))
    if url.path == "/cart/calculate":
        cart = json.loads(body)
        return _encoded(calculate(cart["user_id"], cart["items"]))
    name = url.path.removeprefix("/products/")
    if name.isdecimal() and 1 <= int(name) <= PRODUCTS:
        return _encoded(product(int(name)))
    return None


def _number(value: float) -> int | float:
    value = round(value, 2)
    return int(value) if value == int(value) else value


def _encoded(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"
