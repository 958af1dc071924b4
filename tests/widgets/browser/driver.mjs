// Drives Chromium for the Python tests: one JSON command on each line of stdin, one JSON reply on
// each line of stdout. Chromium and its libraries come from the package @sparticuz/chromium.
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const WAIT = Number(process.env.BROWSER_WAIT ?? 20) * 1000;
const FOLDER = process.env.CHROMIUM_FOLDER;
const SCALE = Number(process.env.BROWSER_SCALE ?? 1);
const ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-zygote", "--font-render-hinting=none"];

// Unpacks Chromium once. The folder gets its name when it is complete: two tests may start at once.
async function unpack() {
  if (existsSync(FOLDER)) return;
  mkdirSync(dirname(FOLDER), { recursive: true });
  process.env.TMPDIR = mkdtempSync(`${FOLDER}-`);
  const { default: chromium, inflate } = await import("@sparticuz/chromium");
  const carried = fileURLToPath(new URL("../bin", import.meta.resolve("@sparticuz/chromium")));
  await Promise.all([chromium.executablePath(), inflate(join(carried, "al2023.tar.br"))]);
  // Only the font of the package, so that a picture is the same on every machine.
  const fonts = `<dir>${FOLDER}/fonts</dir><cachedir>${FOLDER}/fonts-cache</cachedir>`;
  const settings = `<?xml version="1.0"?><fontconfig>${fonts}</fontconfig>`;
  writeFileSync(join(process.env.TMPDIR, "fonts", "fonts.conf"), settings);
  try {
    renameSync(process.env.TMPDIR, FOLDER);
  } catch {
    rmSync(process.env.TMPDIR, { recursive: true });
  }
  delete process.env.TMPDIR;
}

async function launch() {
  const { chromium } = await import("playwright-core");
  if (process.env.CHROMIUM) {
    return chromium.launch({ executablePath: process.env.CHROMIUM, args: ARGUMENTS });
  }
  await unpack();
  const env = {
    ...process.env,
    LD_LIBRARY_PATH: join(FOLDER, "al2023", "lib"),
    FONTCONFIG_PATH: join(FOLDER, "fonts"),
  };
  return chromium.launch({ executablePath: join(FOLDER, "chromium"), args: ARGUMENTS, env });
}

let browser, page;
let errors = [];
let logged = [];
let requests = [];

// Chromium itself logs each response with an error status; a refused call is not a mistake.
const STATUS = /^Failed to load resource: the server responded with a status/;

// Frames of other programs have no name: "innermost" is the one that was added last.
function frame(name) {
  if (name === "innermost") return page.frames().at(-1);
  return name ? page.frame({ name }) : page.mainFrame();
}

async function createPage() {
  const viewport = { width: 640, height: 480 };
  page = await browser.newPage({ viewport, deviceScaleFactor: SCALE });
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("console", (message) => {
    const text = message.text();
    if (message.type() === "error" && !STATUS.test(text)) logged.push(text);
  });
  page.on("request", (request) => requests.push(request.url()));
}

const commands = {
  // Runs a script in every page that is opened from now on, before the page's own.
  async before({ script }) {
    if (!page) await createPage();
    await page.addInitScript(script);
  },
  async open({ url }) {
    if (!page) await createPage();
    [errors, logged, requests] = [[], [], []];
    if (page.url() !== url) await page.goto(url);
  },
  // The value of an expression. `evaluate` of the browser itself is not subject to the page's CSP.
  async evaluate({ expression, in: name }) {
    return frame(name).evaluate(expression);
  },
  async until({ expression, in: name }) {
    const end = Date.now() + WAIT;
    for (let last = "no such frame"; ; ) {
      try {
        last = await frame(name)?.evaluate(expression);
        if (last) return last;
      } catch (error) {
        last = String(error);
      }
      if (Date.now() > end) throw new Error(`never true: ${expression}; at last ${last}`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  },
  async click({ selector, in: name }) {
    await frame(name).click(selector, { timeout: WAIT });
  },
  async fill({ selector, text, in: name }) {
    await frame(name).fill(selector, text, { timeout: WAIT });
  },
  // Chooses the option with this text.
  async choose({ selector, option, in: name }) {
    await frame(name).selectOption(selector, { label: option }, { timeout: WAIT });
  },
  // Presses a key, such as "Enter" or "Control+Enter", wherever the focus is.
  async press({ key }) {
    await page.keyboard.press(key);
  },
  async viewport({ width, height }) {
    await page.setViewportSize({ width, height });
  },
  async scheme({ colours }) {
    await page.emulateMedia({ colorScheme: colours });
  },
  // Roles and names, as a screen reader gets them.
  async accessible({ selector, in: name }) {
    return frame(name).locator(selector).ariaSnapshot();
  },
  // Without a selector, what the window shows.
  async screenshot({ path, selector }) {
    await (selector ? page.locator(selector) : page).screenshot({ path });
  },
  async errors() {
    return errors;
  },
  async logged() {
    return logged;
  },
  async requests() {
    return requests;
  },
  // What axe-core finds in the page: rule, impact, and the elements.
  async axe() {
    const source = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
    if (!(await page.evaluate("Boolean(window.axe)"))) {
      await page.evaluate(readFileSync(source, "utf-8"));
    }
    const { violations } = await page.evaluate(`axe.run({ resultTypes: ["violations"] })`);
    return violations.map(({ id, impact, nodes }) => ({
      rule: id,
      impact,
      elements: nodes.map((node) => `${node.html.slice(0, 200)} ${node.failureSummary}`),
    }));
  },
  async bundle({ input }) {
    const { rolldown } = await import("rolldown");
    const build = await rolldown({ input, platform: "browser" });
    const { output } = await build.generate({ format: "iife" });
    await build.close();
    return output[0].code;
  },
};

// A promise of the page may never be settled.
function inTime(name, result) {
  const late = new Promise((_, reject) => {
    setTimeout(() => reject(new Error(`${name} took too long`)), 4 * WAIT).unref();
  });
  return Promise.race([result, late]);
}

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  let reply;
  try {
    if (command.do !== "bundle") {
      browser ??= await launch().catch((error) => {
        const missing = /loading shared libraries: ([^:]+)/.exec(error);
        if (!missing) throw error;
        const advice = "install Debian's package chromium, or what brings it, or set CHROMIUM";
        throw new Error(`Chromium lacks ${missing[1]}: ${advice}`);
      });
    }
    reply = { value: (await inTime(command.do, commands[command.do](command))) ?? null };
  } catch (error) {
    reply = { error: String(error) };
  }
  process.stdout.write(`${JSON.stringify(reply)}\n`);
}
await browser?.close();
