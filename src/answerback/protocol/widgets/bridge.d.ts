/** Types of bridge.js, which connects a widget with its host. */

export as namespace answerback;

export type Theme = "light" | "dark";
export type DisplayMode = "inline" | "fullscreen" | "pip";

/** The call was refused, or failed. */
export interface Refusal {
  /** A code of Answerback, such as `LOGIN_REQUIRED`, or `TIMEOUT`, `CANCELLED`, `HOST_ERROR`. */
  code: string;
  message: string;
  hint?: string;
  /** The page where the user can mend it. */
  url?: string;
  feature?: string;
  [key: string]: unknown;
}

/** The rest of a result. */
export interface Details {
  /** `_meta` of the result: it reaches the widget, never the model. */
  meta: Record<string, unknown>;
  /** The arguments of the call; null if the host has not sent them. */
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
  /** The name that the host is told; the title of the page if not given. */
  name?: string;
  version?: string;
  displayModes?: DisplayMode[];
  /** Milliseconds until a request to the host fails; 60000 if not given. */
  timeout?: number;
  /** Milliseconds to wait for the answer to `ui/initialize`; 2000 if not given. */
  handshakeTimeout?: number;
  /** False: refusals without a listener draw nothing. */
  prompt?: boolean;
  /** False: the size of the page is not reported. */
  autoResize?: boolean;
}

export interface App {
  /** The kind of the host. */
  readonly host: "chatgpt" | "mcp-apps" | "none";
  /** Fulfilled when the host has answered, or did not in time. */
  readonly ready: Promise<void>;
  /** The arguments of the call; null if the host has not sent them. */
  readonly input: Record<string, unknown> | null;
  /** The theme of the host. */
  readonly theme: Theme;
  /** The last state that was set: kept by ChatGPT, elsewhere as long as the page lives. */
  readonly state: any;
  /** Gets the data of each result, also of one that came before. Returns a function that ends it. */
  onData(listener: (data: any, details: Details) => void): () => void;
  /** Gets each refusal, in place of the default prompt. Returns a function that ends it. */
  onRefused(listener: (refusal: Refusal) => void): () => void;
  /** Gets the theme now and at each change. Returns a function that ends it. */
  onTheme(listener: (theme: Theme) => void): () => void;
  /** Draws the default prompt. */
  showRefusal(refusal: Refusal): void;
  /** Calls a tool of the server. It never throws: read `error` of the result. */
  call<T = any>(name: string, args?: Record<string, unknown>): Promise<CallResult<T>>;
  /** Asks the host to open an http or https address. */
  openLink(url: string): Promise<void>;
  /** Sends a message to the conversation, as if the user had written it. */
  sendMessage(text: string): Promise<void>;
  /** Keeps a state for the widget. */
  setState(state: any): void;
  /** Asks for a display mode; returns the one that the host chose. */
  requestDisplayMode(mode: DisplayMode): Promise<DisplayMode>;
}

/** Connects the widget with its host. Each further call returns the same object. */
export function connect(options?: Options): App;
