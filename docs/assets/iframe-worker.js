// Browsers start no worker on a page that was opened from a disk. There, a hidden frame runs the
// script of the search instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => this.receive(data);
      const script = inside.document.createElement("script");
      script.src = url;
      this.loaded = new Promise((resolve) => script.addEventListener("load", resolve));
      inside.document.head.append(script);
    }

    // A worker gets copies, and never in the turn in which they were sent.
    async postMessage(data) {
      await this.loaded;
      const copy = structuredClone(data);
      this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data: copy }));
    }

    receive(data) {
      const event = new MessageEvent("message", { data: structuredClone(data) });
      setTimeout(() => {
        this.dispatchEvent(event);
        this.onmessage?.(event);
      });
    }

    terminate() {
      this.frame.remove();
    }
  };
}
