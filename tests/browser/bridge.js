// A browser for tests in another language: one command a line comes in as JSON, one answer goes out.

const readline = require("node:readline");
const { chromium } = require("playwright-core");

const [executablePath, ...extraArgs] = process.argv.slice(2);
const problems = [];
let browser;
let page;

const commands = {
  // A page of its own: size, colour scheme and whether scripts run are said at its birth.
  async open({ url, width = 1280, height = 800, scheme = "light", scripts = true, headers = {} }) {
    const context = await browser.newContext({
      viewport: { width, height },
      colorScheme: scheme,
      javaScriptEnabled: scripts,
      extraHTTPHeaders: headers,
    });
    page = await context.newPage();
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) problems.push(message.text());
    });
    page.on("pageerror", (error) => problems.push(String(error)));
    page.on("dialog", (dialog) => {
      problems.push(`dialog: ${dialog.message()}`);
      dialog.dismiss();
    });
    const answer = await page.goto(url);
    return { status: answer.status(), headers: answer.headers() };
  },
  // What is left open would go on asking an exporter that has ended.
  close: () => page?.context().close(),
  evaluate: ({ script }) => page.evaluate(script),
  press: ({ selector, key }) => page.locator(selector).press(key),
  click: ({ selector }) => page.locator(selector).click(),
  text: ({ selector }) => page.locator(selector).allInnerTexts(),
  // Of the whole page, or of what stands above an element.
  async screenshot({ path, above }) {
    const box = above && (await page.locator(above).boundingBox());
    const clip = box && { x: 0, y: 0, width: page.viewportSize().width, height: box.y };
    await page.screenshot({ path, fullPage: true, clip });
  },
  problems: () => problems.splice(0),
};

async function main() {
  // The sandbox wants rights that containers of CI lack; all pages are our own.
  browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu", ...extraArgs] });
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const { command, ...options } = JSON.parse(line);
    try {
      console.log(JSON.stringify({ answer: (await commands[command](options)) ?? null }));
    } catch (error) {
      console.log(JSON.stringify({ error: String(error) }));
    }
  }
  await browser.close();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
