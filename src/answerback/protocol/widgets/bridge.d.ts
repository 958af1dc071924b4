/** Types for bridge.js, which connects a widget to its host. */

export as namespace answerback;

export type Theme = "light" | "dark";
export type DisplayMode = "inline" | "fullscreen" | "pip";

/** The call was refused, or failed. */
export interface Refusal {
  /** An Answerback code such as `LOGIN_REQUIRED`, or `TIMEOUT`, `CANCELLED`, `HOST_ERROR`. */
  code: string;
  message: string;
  hint?: string;
  /** The page where the user can resolve this. */
  url?: string;
  feature?: string;
  [key: string]: unknown;
}

/** The rest of a result. */
export interface Details {
  /** The result's `_meta`, which reaches the widget but never the model. */
  meta: Record<string, unknown>;
  /** The call's arguments; null if the host has not sent them. */
  input: Record<string, unknown> | null;
  text: string;
}

export interface CallResult<T = any> {
  /** `structuredContent`; null if there is none. */
  data: T;
  text: string;
  meta: Record<string, unknown>;
  /** Null if the call succeeded. */
  error: Refusal | null;
}

export interface Options {
  /** The name sent to the host; by default the page's title. */
  name?: string;
  version?: string;
  displayModes?: DisplayMode[];
  /** Milliseconds until a request to the host fails; 60000 by default. */
  timeout?: number;
  /** Milliseconds to wait for the response to `ui/initialize`; 2000 by default. */
  handshakeTimeout?: number;
  /** If false, a refusal without a listener shows nothing. */
  prompt?: boolean;
  /** If false, the page's size is not reported. */
  autoResize?: boolean;
}

export interface App {
  /** The kind of host. */
  readonly host: "chatgpt" | "mcp-apps" | "none";
  /** Resolves once the host has responded, or has failed to respond in time. */
  readonly ready: Promise<void>;
  /** The call's arguments; null if the host has not sent them. */
  readonly input: Record<string, unknown> | null;
  /** The host's theme. */
  readonly theme: Theme;
  /** The last state set; ChatGPT stores it, other hosts keep it until the page closes. */
  readonly state: any;
  /** Listens for each result's data, even an earlier one's. Returns an unsubscribe function. */
  onData(listener: (data: any, details: Details) => void): () => void;
  /** Listens for refusals, replacing the default prompt. Returns an unsubscribe function. */
  onRefused(listener: (refusal: Refusal) => void): () => void;
  /** Listens for the theme, now and on each change. Returns an unsubscribe function. */
  onTheme(listener: (theme: Theme) => void): () => void;
  /** Shows the default prompt. */
  showRefusal(refusal: Refusal): void;
  /** Calls one of the server's tools. It never throws; check the result's `error`. */
  call<T = any>(name: string, args?: Record<string, unknown>): Promise<CallResult<T>>;
  /** Asks the host to open an http or https address. */
  openLink(url: string): Promise<void>;
  /** Sends a message to the conversation, as if the user had written it. */
  sendMessage(text: string): Promise<void>;
  /** Stores the widget's state. */
  setState(state: any): void;
  /** Requests a display mode; returns the one that the host chose. */
  requestDisplayMode(mode: DisplayMode): Promise<DisplayMode>;
}

/** Connects the widget to its host. Later calls return the same object. */
export function connect(options?: Options): App;
