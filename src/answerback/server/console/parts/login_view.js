// Logging in: with a token, or with a test token from a server that was started with --dev-auth.
// A reload forgets a token, but not a test token, which is useless elsewhere.

const TEST_TOKEN = "answerback-test-token";
const TEST_USER = "answerback-test-user";

function LoginButton() {
  const { about, token } = useStore();
  if (!about || !about.auth) return "";
  const user = token ? userOf(token) : null;
  return html`<button type="button" class="small login" onClick=${() => update({ login: { scopes: "" } })}>
    ${token ? (user && user.sub ? `Logged in: ${user.sub}` : "Logged in") : "Log in"}
  </button>`;
}

// The claims in a JSON Web Token; null for other tokens. They are only shown, not checked.
function userOf(token) {
  const [, payload] = token.split(".");
  if (!payload) return null;
  try {
    const text = atob(payload.replaceAll("-", "+").replaceAll("_", "/"));
    return JSON.parse(new TextDecoder().decode(Uint8Array.from(text, (char) => char.charCodeAt(0))));
  } catch {
    return null;
  }
}

// Switches to another token, or to none. A session belongs to the user who opened it, so new
// sessions are opened.
async function useToken(token, isTest = false) {
  if (isTest) sessionStorage.setItem(TEST_TOKEN, token);
  else sessionStorage.removeItem(TEST_TOKEN);
  for (const server of state.servers) server.disconnect();
  update({ token, login: null });
  await openServer(state.server);
}

function LoginDialog() {
  const { login } = useStore();
  const isOpen = Boolean(login);
  const dialog = useModal(isOpen);
  return html`<dialog ref=${dialog} aria-labelledby="login-title" onClose=${() => update({ login: null })}>
    ${isOpen
      ? html`<h2 id="login-title">Log in</h2>
          <${LoginForms} scopes=${login.scopes} />
          <button type="button" class="quiet" onClick=${() => update({ login: null })}>Close</button>`
      : ""}
  </dialog>`;
}

// The page for a server that only answers logged-in users.
function LoginPage({ reason }) {
  return html`<section class="login-page" aria-labelledby="login-page-title">
    <h2 id="login-page-title">Log in to use this server</h2>
    <p class="hint">${reason}</p>
    <${LoginForms} scopes="" />
  </section>`;
}

function LoginForms({ scopes }) {
  const { about, token } = useStore();
  const user = token ? userOf(token) : null;
  return html`<div class="login-forms">
    ${token
      ? html`<p>You are logged in${user && user.sub ? html` as <strong>${user.sub}</strong>` : ""}${user && user.scope ? html`, with the scopes <code>${user.scope}</code>` : ""}.
          <button type="button" class="small" onClick=${() => useToken("")}>Log out</button></p>`
      : ""}
    ${about.tokens ? html`<${TestTokenForm} scopes=${scopes} />` : ""}
    <${TokenForm} />
  </div>`;
}

function TokenForm() {
  const [token, setToken] = useState("");
  const submit = (event) => {
    event.preventDefault();
    if (token.trim()) useToken(token.trim().replace(/^Bearer\s+/i, ""));
  };
  return html`<form onSubmit=${submit}>
    <label for="login-token">Token or API key</label>
    <p class="hint" id="login-token-hint">It is sent as <code>Authorization: Bearer …</code>, and forgotten when the page is closed.</p>
    <input id="login-token" type="password" autocomplete="off" spellcheck=${false} aria-describedby="login-token-hint" value=${token} onInput=${(event) => setToken(event.currentTarget.value)} />
    <button type="submit" class="main" disabled=${!token.trim()}>Use this token</button>
  </form>`;
}

function TestTokenForm({ scopes }) {
  const { about } = useStore();
  const [user, setUser] = useState(sessionStorage.getItem(TEST_USER) || "developer");
  const [wanted, setWanted] = useState(scopes || "");
  const [error, setError] = useState("");
  const submit = async (event) => {
    event.preventDefault();
    setError("");
    try {
      const asked = { user, scopes: wanted.split(/[\s,]+/).filter(Boolean) };
      const { access_token: token } = await fetchJson(about.tokens, asked);
      sessionStorage.setItem(TEST_USER, user);
      await useToken(token, true);
    } catch (failure) {
      setError(failure.message);
    }
  };
  return html`<form onSubmit=${submit}>
    <p class="hint">This server was started with <code>--dev-auth</code>: it issues test tokens for any user.</p>
    <label for="login-user">User</label>
    <input id="login-user" required autocomplete="off" value=${user} onInput=${(event) => setUser(event.currentTarget.value)} />
    <label for="login-scopes">Scopes, separated by spaces</label>
    <input id="login-scopes" autocomplete="off" value=${wanted} onInput=${(event) => setWanted(event.currentTarget.value)} />
    <button type="submit" class="main">Log in with a test token</button>
    ${error ? html`<p class="problem" role="alert">${error}</p>` : ""}
  </form>`;
}

// Refusals by gates.

const REFUSAL_META = "answerback/refusal";
const LOGIN_CODES = new Set(["LOGIN_REQUIRED", "SCOPE_REQUIRED"]);

// A gate's refusal, from a reply over any wire: { code, hint, url }; null for other replies.
function refusalOf(reply) {
  if (reply.ok || reply.waiting) return null;
  const { result, headers, status, body } = reply;
  const meta = result && (result._meta || {})[REFUSAL_META];
  if (meta) return meta;
  const code = headers && headers["x-error-code"];
  if (code && (headers["x-error-url"] || LOGIN_CODES.has(code))) {
    return { code, hint: headers["x-error-hint"], url: headers["x-error-url"] };
  }
  return refusalOfError({ status, ...body });
}

// From a JSON-RPC error.
function refusalOfError({ code: number, status, data }) {
  if (number === URL_ELICITATION_REQUIRED) {
    const [page] = (data && data.elicitations) || [];
    return { code: "URL_ELICITATION_REQUIRED", url: page && page.url };
  }
  const code = data && data.code;
  if (LOGIN_CODES.has(code)) return { code, hint: data.hint };
  if (status === 401) return { code: "LOGIN_REQUIRED" };
  return status === 403 ? { code: "SCOPE_REQUIRED" } : null;
}

function CallRefusal({ call }) {
  const refused = call.replies.find(refusalOf);
  if (!refused || call.running) return "";
  const challenged = call.replies.find((reply) => reply.challenge) || refused;
  return html`<${RefusalView} refusal=${refusalOf(refused)} challenge=${challenged.challenge} />`;
}

// What a user can do about a refusal: log in, log in with other scopes, or visit a page.
function RefusalView({ refusal, challenge = "" }) {
  const { about, token } = useStore();
  const { code, hint, url } = refusal;
  const [, scopes = ""] = /scope="([^"]*)"/.exec(challenge) || [];
  const page = url && safeUrl(url);
  const canLogIn = about.auth && LOGIN_CODES.has(code);
  const text = {
    LOGIN_REQUIRED: token ? "The server does not accept this token." : "Only logged-in users may use this.",
    SCOPE_REQUIRED: scopes ? "The token does not have the scopes that this needs." : "This user is not allowed to use this.",
    SUBSCRIPTION_REQUIRED: "This needs a subscription.",
    LINK_REQUIRED: "This needs a linked account.",
    URL_ELICITATION_REQUIRED: "You need to visit a page first.",
  }[code];
  return html`<div class="refusal">
    <p><span class="chip failed">${code}</span> ${text || ""} ${scopes ? html`Scopes: <code>${scopes}</code>` : ""}</p>
    ${hint ? html`<p class="hint">${capitalized(hint)}</p>` : ""}
    <div class="buttons">
      ${canLogIn ? html`<button type="button" onClick=${() => update({ login: { scopes } })}>Log in</button>` : ""}
      ${page ? html`<a class="button" href=${page.href} target="_blank" rel="noopener noreferrer">Open ${page.host}</a>` : ""}
    </div>
  </div>`;
}

// A tool's gates, as the list shows them.
function gateMarks(tool) {
  const schemes = tool.securitySchemes || (tool._meta || {}).securitySchemes;
  if (!Array.isArray(schemes) || schemes.some((scheme) => scheme?.type === "noauth")) return [];
  const scopes = schemes.flatMap((scheme) => scheme?.scopes || []);
  return ["login", ...scopes.map((scope) => `scope ${scope}`)];
}
