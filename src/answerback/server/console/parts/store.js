// What the page shows. Components read it with useStore, and change it with update.

const state = {
  about: null, // What the server says about itself: name, wires, how to log in.
  servers: [], // The servers to choose from; one, unless an mcp.json has several.
  server: null, // The chosen one, a Server.
  connecting: false, // Whether the server has yet to answer.
  problem: "", // Why the server cannot be used.
  lists: { tools: [], resources: [], templates: [], prompts: [] },
  view: "tools", // Which tab is open: start, tools, resources, prompts, tasks, history, log.
  chosen: {}, // The chosen entry of each tab, by the tab's name.
  calls: [], // The history, newest first.
  drafts: {}, // The arguments in each tool's form, by the tool's name.
  shown: {}, // The id of the call shown with each tool, by the tool's name.
  activity: {}, // The progress of each running request, by the id of its place.
  runs: {}, // The last request for each resource and prompt, by the id of its place.
  tasks: [], // The tasks that this page knows about, newest first.
  version: "", // The MCP version that the resources and prompts use.
  login: null, // The open login dialog: { scopes }.
  confirming: null, // The destructive call to confirm: { tool, args, answer(isYes) }.
  messages: [], // Log messages and progress, newest last.
  questions: [], // The server's questions to its user, each with resolve(result).
  token: "", // The user's bearer token.
  error: "", // What went wrong with the page itself.
};

const listeners = new Set();

function update(change) {
  Object.assign(state, typeof change === "function" ? change(state) : change);
  for (const listener of listeners) listener();
}

function useStore() {
  const [, render] = useState(0);
  // Before the first paint, so that no change is missed.
  useLayoutEffect(() => {
    const listener = () => render((count) => count + 1);
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, []);
  return state;
}

const MAX_KEPT = 200;

function keep(list, entry) {
  return [...list, entry].slice(-MAX_KEPT);
}
