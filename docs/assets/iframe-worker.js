// Browsers start no workers for pages that are opened from the disk (file://). There, the site's
// search runs in a hidden frame of the page instead. Its name keeps Zensical from loading another.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.onmessage = null;
      this.onerror = null;
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      this.inside = this.frame.contentWindow;
      this.inside.postMessage = (data) => this.tell("message", { data: structuredClone(data) });
      const script = this.inside.document.createElement("script");
      script.src = url;
      this.loaded = new Promise((resolve) => (script.onload = resolve));
      script.onerror = () => this.tell("error", {});
      this.inside.document.body.append(script);
    }

    tell(kind, fields) {
      const event = new MessageEvent(kind, fields);
      this.dispatchEvent(event);
      this["on" + kind]?.(event);
    }

    postMessage(data) {
      const event = { data: structuredClone(data) };
      this.loaded.then(() =>
        this.inside.dispatchEvent(new this.inside.MessageEvent("message", event)),
      );
    }

    terminate() {
      this.frame.remove();
    }
  };
}
