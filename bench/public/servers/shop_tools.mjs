// The three tools of TM Dev Lab's shop, the same for every server on Node.
import Redis from 'ioredis';
import { z } from 'zod';

const api = process.env.API_URL;
const store = new Redis(process.env.REDIS_URL, { enableReadyCheck: false });
const SERVER_TYPE = 'node';
const ITEMS = [{ product_id: 42, quantity: 2 }, { product_id: 1337, quantity: 1 }];

const read = async (path, options) => (await fetch(api + path, options)).json();
const result = (value) => ({ content: [{ type: 'text', text: JSON.stringify(value) }] });

export const tools = [
  {
    name: 'search_products',
    description: 'Search products by category and price, with their popularity.',
    schema: z.object({
      category: z.string().default('Electronics'),
      min_price: z.number().default(50),
      max_price: z.number().default(500),
      limit: z.number().default(10),
    }),
    run: async ({ category, min_price, max_price, limit }) => {
      const query = new URLSearchParams({ category, min_price, max_price, limit });
      const [found, popular] = await Promise.all([
        read(`/products/search?${query}`),
        store.zrevrange('bench:popular', 0, 9),
      ]);
      const ids = popular.map((member) => Number(member.split(':')[1]));
      const ranks = new Map(ids.map((id, index) => [id, index + 1]));
      const products = found.products.map(({ id, sku, name, price, rating }) => ({
        id, sku, name, price, rating, popularity_rank: ranks.get(id) ?? 0,
      }));
      return result({
        category,
        total_found: found.total_found,
        products,
        top10_popular_ids: ids,
        server_type: SERVER_TYPE,
      });
    },
  },
  {
    name: 'get_user_cart',
    description: "Show a user's cart and the last orders.",
    schema: z.object({ user_id: z.string().default('user-00042') }),
    run: async ({ user_id }) => {
      const cart = await store.hgetall(`bench:cart:${user_id}`);
      const items = JSON.parse(cart.items ?? '[]');
      const [, history] = await Promise.all([
        read(`/products/${items[0]?.product_id ?? 1}`),
        store.lrange(`bench:history:${user_id}`, 0, 4),
      ]);
      return result({
        user_id,
        cart: { items, item_count: items.length, estimated_total: Number(cart.total ?? 0) },
        recent_history: history.map((entry) => JSON.parse(entry)),
        server_type: SERVER_TYPE,
      });
    },
  },
  {
    name: 'checkout',
    description: 'Order what is in the cart.',
    schema: z.object({
      user_id: z.string().default('user-00042'),
      items: z.array(z.object({ product_id: z.number(), quantity: z.number() })).default(ITEMS),
    }),
    run: async ({ user_id, items }) => {
      const ts = Math.floor(Date.now() / 1000);
      const number = String(Number(user_id.split('-')[1]) % 100).padStart(5, '0');
      const order = JSON.stringify({ order_id: `ORD-${user_id}-${ts}`, items, ts });
      const [calculated, count] = await Promise.all([
        read('/cart/calculate', {
          method: 'POST',
          headers: { 'Content-Type': 'application/json' },
          body: JSON.stringify({ user_id, items }),
        }),
        store.incr(`bench:ratelimit:user-${number}`),
        store.rpush(`bench:history:${user_id}`, order),
        store.zincrby('bench:popular', 1, `product:${items[0].product_id}`),
      ]);
      return result({
        order_id: calculated.order_id,
        user_id,
        total: calculated.total,
        items_count: items.length,
        rate_limit_count: count,
        status: 'confirmed',
        server_type: SERVER_TYPE,
      });
    },
  },
];
