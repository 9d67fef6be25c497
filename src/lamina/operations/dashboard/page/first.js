// Asks for the events before the modules that read them are here.

window.firstAnswer = fetch(`events?view=${encodeURIComponent(location.hash.split(/[#/?]+/)[1] ?? "")}`, { cache: "no-store" }).catch(() => null);
