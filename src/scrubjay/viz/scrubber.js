// Steps through the frames of a game. The page defines `frames` and a function `show` that calls `showStep` first.
const byId = id => document.getElementById(id);
const scrubber = byId("scrubber");
let timer = null;

function showStep(frame) {
  byId("picture").src = "data:image/webp;base64," + frame.image;
  byId("number").textContent = "Step " + frame.step;
  const swatch = document.createElement("i");
  swatch.className = "swatch";
  swatch.style.background = frame.color;
  byId("stage").replaceChildren(swatch, frame.stage);
  byId("result").className = frame.failed ? "failed" : "";
  const player = byId("player").style;
  [player.left, player.top] = frame.player.map(percent => percent + "%");
  player.transform = "rotate(" + frame.turn + "deg)";
}

function stop() {
  clearInterval(timer);
  timer = null;
  byId("play").textContent = "Play";
}

function go(by) {
  const next = Math.min(frames.length - 1, Math.max(0, Number(scrubber.value) + by));
  if (next === Number(scrubber.value)) stop();
  scrubber.value = next;
  show();
}

scrubber.addEventListener("input", () => { stop(); show(); });
byId("play").addEventListener("click", () => {
  if (timer) return stop();
  if (Number(scrubber.value) === frames.length - 1) scrubber.value = 0;
  byId("play").textContent = "Pause";
  timer = setInterval(() => go(1), 120);
});
document.addEventListener("keydown", event => {
  const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!by || event.target === scrubber) return;
  event.preventDefault();
  stop();
  go(by);
});
