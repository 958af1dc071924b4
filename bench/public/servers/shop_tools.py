"""The three tools of TM Dev Lab's shop, the same for every Python server."""

import asyncio
import json
import os
import time
from importlib import import_module
from typing import Any

clients = import_module(os.environ["SHOP_CLIENTS"])
SERVER_TYPE = "python"


async def search_products(
    category: str = "Electronics",
    min_price: float = 50.0,
    max_price: float = 500.0,
    limit: int = 10,
) -> str:
    """Search products by category and price, with their popularity."""
    query = {"category": category, "min_price": min_price, "max_price": max_price, "limit": limit}
    found, popular = await asyncio.gather(
        clients.get("/products/search", query),
        clients.store().zrevrangebyscore("bench:popular", "+inf", "-inf", start=0, num=10),
    )
    ids = [int(member.split(":")[1]) for member in popular]
    ranks = {id: rank for rank, id in enumerate(ids, 1)}
    products = [
        {
            "id": each["id"],
            "sku": each["sku"],
            "name": each["name"],
            "price": each["price"],
            "rating": each["rating"],
            "popularity_rank": ranks.get(each["id"], 0),
        }
        for each in found["products"]
    ]
    return json.dumps(
        {
            "category": category,
            "total_found": found["total_found"],
            "products": products,
            "top10_popular_ids": ids,
            "server_type": SERVER_TYPE,
        }
    )


async def get_user_cart(user_id: str = "user-00042") -> str:
    """Show a user's cart and the last orders."""
    cart = await clients.store().hgetall(f"bench:cart:{user_id}")
    items = json.loads(cart.get("items", "[]"))
    first = items[0]["product_id"] if items else 1
    _, history = await asyncio.gather(
        clients.get(f"/products/{first}"),
        clients.store().lrange(f"bench:history:{user_id}", 0, 4),
    )
    shown = {
        "items": items,
        "item_count": len(items),
        "estimated_total": float(cart.get("total", 0)),
    }
    return json.dumps(
        {
            "user_id": user_id,
            "cart": shown,
            "recent_history": [json.loads(entry) for entry in history],
            "server_type": SERVER_TYPE,
        }
    )


async def checkout(user_id: str = "user-00042", items: list[dict[str, Any]] | None = None) -> str:
    """Order what is in the cart."""
    if items is None:
        items = [{"product_id": 42, "quantity": 2}, {"product_id": 1337, "quantity": 1}]
    now = int(time.time())
    counter = f"bench:ratelimit:user-{int(user_id.split('-')[1]) % 100:05d}"
    order = json.dumps({"order_id": f"ORD-{user_id}-{now}", "items": items, "ts": now})
    product = f"product:{items[0]['product_id']}"
    store = clients.store()
    calculated, count, _, _ = await asyncio.gather(
        clients.post("/cart/calculate", {"user_id": user_id, "items": items}),
        store.incr(counter),
        store.rpush(f"bench:history:{user_id}", order),
        store.zadd("bench:popular", {product: 1}, incr=True),
    )
    return json.dumps(
        {
            "order_id": calculated["order_id"],
            "user_id": user_id,
            "total": calculated["total"],
            "items_count": len(items),
            "rate_limit_count": count,
            "status": "confirmed",
            "server_type": SERVER_TYPE,
        }
    )


TOOLS = (search_products, get_user_cart, checkout)
