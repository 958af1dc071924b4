// The server's questions to its user: a form, or a page to visit.

let nextQuestion = 1;

// Shows a question, and returns the user's answer in MCP's format.
function askUser(method, params, { place, signal } = {}) {
  if (method !== "elicitation/create") {
    throw new Error(`The console does not answer ${method}`);
  }
  return new Promise((resolve, reject) => {
    const question = { id: nextQuestion++, method, params: params || {}, place };
    const remove = () =>
      update({ questions: state.questions.filter((each) => each.id !== question.id) });
    question.resolve = (result) => {
      remove();
      resolve(result);
    };
    const withdraw = () => {
      remove();
      reject(new DOMException("The question was withdrawn", "AbortError"));
    };
    if (signal && signal.aborted) return withdraw();
    signal?.addEventListener("abort", withdraw, { once: true });
    update({ questions: [...state.questions, question] });
  });
}

function useQuestions(place) {
  return useStore().questions.filter((each) => (each.place && each.place.id) === (place && place.id));
}

// Questions that the open view does not show: those from other views, or without a request.
function OtherQuestions() {
  const { questions, view, chosen, tasks } = useStore();
  const task = view === "tasks" && (tasks.find(({ id }) => id === chosen.tasks) || tasks[0]);
  const isHere = ({ place }) =>
    task
      ? task.place.id === place.id
      : place.view === view && [undefined, place.entry].includes(chosen[view]);
  const elsewhere = questions.filter((each) => each.place && !isHere(each));
  return html`<div class="other-questions">
    ${questions.filter((each) => !each.place).map((each) => html`<${QuestionView} key=${each.id} question=${each} />`)}
    ${elsewhere.map(
      (each) => html`<p key=${each.id} class="question-note" role="status">
        <span>The server asks: ${each.params.message}</span>
        <button type="button" class="small" onClick=${() => openPlace(each.place)}>Answer</button>
      </p>`,
    )}
  </div>`;
}

function openPlace({ view, entry }) {
  update({ view, chosen: { ...state.chosen, [view]: entry } });
}

function QuestionView({ question }) {
  const box = useRef(null);
  const title = `question-${question.id}-title`;
  useEffect(() => {
    box.current?.querySelector("input, select, textarea, a, button")?.focus();
  }, []);
  const isPage = question.params.mode === "url";
  return html`<section class="question" role="group" aria-labelledby=${title} ref=${box}>
    <p class="question-kind">${isPage ? "The server asks you to visit a page" : "The server asks you"}</p>
    <h3 id=${title}>${question.params.message || "A question without text"}</h3>
    ${isPage ? html`<${PageQuestion} question=${question} />` : html`<${FormQuestion} question=${question} />`}
  </section>`;
}

function FormQuestion({ question }) {
  const schema = question.params.requestedSchema || { type: "object", properties: {} };
  const [value, setValue] = useState(() => initialArguments(schema));
  const [showAll, setShowAll] = useState(false);
  const form = useRef(null);
  const found = problemsOf(schema, value);
  const submit = (event) => {
    event.preventDefault();
    if (!found.length) return question.resolve({ action: "accept", content: value });
    setShowAll(true);
    focusLater(() => form.current.querySelector("[aria-invalid]"));
  };
  return html`<form ref=${form} onSubmit=${submit} onKeyDown=${submitOnCtrlEnter} noValidate>
    <${SchemaForm}
      schema=${schema}
      value=${value}
      change=${setValue}
      problems=${showAll ? found : []}
      name=${`question-${question.id}`}
    />
    <div class="call-row">
      <button type="submit" class="main">Answer</button>
      <${RefuseButtons} question=${question} />
    </div>
  </form>`;
}

function PageQuestion({ question }) {
  const url = safeUrl(question.params.url);
  return html`${url
      ? html`<p>The page is at <strong>${url.host}</strong>. Open it only if you trust it.</p>
          <p class="page-url"><code>${url.href}</code></p>`
      : html`<p class="problem">This is not a web address: <code>${String(question.params.url)}</code></p>`}
    <div class="call-row">
      ${url ? html`<a class="button" href=${url.href} target="_blank" rel="noopener noreferrer">Open the page</a>` : ""}
      <button type="button" class="main" disabled=${!url} onClick=${() => question.resolve({ action: "accept" })}>Continue</button>
      <${RefuseButtons} question=${question} />
    </div>`;
}

function RefuseButtons({ question }) {
  return html`<button type="button" onClick=${() => question.resolve({ action: "decline" })}>Decline</button>
    <button type="button" class="quiet" onClick=${() => question.resolve({ action: "cancel" })}>Dismiss</button>`;
}

// The address of a web page; null for other addresses, such as `javascript:`.
function safeUrl(text) {
  try {
    const url = new URL(text);
    return ["http:", "https:"].includes(url.protocol) ? url : null;
  } catch {
    return null;
  }
}
