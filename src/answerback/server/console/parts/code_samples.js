// The same call as code or as a terminal command, to copy.

function codeSamples(server, tool, args) {
  const samples = [
    { id: "python", name: "Python", text: pythonSample(server, tool, args) },
    { id: "shell", name: "Command line", text: shellSample(server, tool, args) },
  ];
  if (server.about.functions === undefined) return samples;
  return [{ id: "curl", name: "curl", text: curlSample(server, tool, args) }, ...samples];
}

function absoluteUrl(path) {
  return location.origin + BASE + path;
}

// What a client connects to: the server's address, or the command or URL that the console opened.
function targetOf(server) {
  return server.about.target || absoluteUrl(server.about.mcp);
}

// The sample does not contain the token itself: people paste samples into chats.
function curlSample(server, tool, args) {
  const url = absoluteUrl(server.restPath(tool.name));
  const lines = [`curl ${shellQuoted(url)}`, `-H 'Content-Type: application/json'`];
  if (state.token) lines.push(`-H "Authorization: Bearer $TOKEN"`);
  lines.push(`-d ${shellQuoted(JSON.stringify(args))}`);
  return lines.join(" \\\n  ");
}

function pythonSample(server, tool, args) {
  const { member } = server.about;
  const target = pythonValue(targetOf(server));
  const auth = state.token ? `, auth=os.environ["TOKEN"]` : "";
  const imports = [...(auth ? ["import os"] : []), ...(member ? ["from pathlib import Path"] : [])];
  // A file connects to all of its servers; tool names then start with the server's name.
  const name = member ? `${member}_${tool.name}` : tool.name;
  return [
    ...(imports.length ? [...imports, ""] : []),
    "from answerback import connect",
    "",
    `with connect(${member ? `Path(${target})` : target}${auth}) as server:`,
    `    reply = server.call(${[pythonValue(name), ...pythonArguments(args)].join(", ")})`,
    "    print(reply.data)",
  ].join("\n");
}

function pythonArguments(args) {
  const given = Object.entries(args);
  if (!given.every(([name]) => isPythonName(name))) return [`**${pythonValue(args)}`];
  return given.map(([name, value]) => `${name}=${pythonValue(value)}`);
}

const PYTHON_KEYWORDS = new Set(
  (
    "False None True and as assert async await break class continue def del elif else except " +
    "finally for from global if import in is lambda nonlocal not or pass raise return try while " +
    "with yield"
  ).split(" "),
);

function isPythonName(name) {
  return /^[A-Za-z_]\w*$/.test(name) && !PYTHON_KEYWORDS.has(name);
}

function pythonValue(value) {
  if (value === null || value === undefined) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (Array.isArray(value)) return `[${value.map(pythonValue).join(", ")}]`;
  if (typeof value === "object") {
    const members = Object.entries(value).map(
      ([name, each]) => `${JSON.stringify(name)}: ${pythonValue(each)}`,
    );
    return `{${members.join(", ")}}`;
  }
  return JSON.stringify(value); // A number or a string: Python reads JSON's escapes too.
}

function shellSample(server, tool, args) {
  const { member } = server.about;
  const words = ["answerback call", shellQuoted(targetOf(server)), shellQuoted(tool.name)];
  if (Object.keys(args).length) words.push(`--json ${shellQuoted(JSON.stringify(args))}`);
  if (member) words.push(`--server ${shellQuoted(member)}`);
  if (state.token) words.push(`--token '\${TOKEN}'`);
  return words.join(" ");
}
