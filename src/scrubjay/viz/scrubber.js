// A scrubber through the frames of a game. The page has `frames`, and a function `show` that begins with `showStep`.
const at = id => document.getElementById(id);
const scrubber = at("scrubber");
let timer = null;

function showStep(frame) {
  at("picture").src = "data:image/webp;base64," + frame.image;
  at("number").textContent = "Step " + frame.step;
  const patch = document.createElement("i");
  patch.style.background = frame.color;
  at("stage").replaceChildren(patch, frame.stage);
  at("result").className = frame.failed ? "failed" : "";
  const player = at("player").style;
  [player.left, player.top] = frame.player.map(share => share + "%");
  player.transform = "rotate(" + frame.turn + "deg)";
}

function stop() {
  clearInterval(timer);
  timer = null;
  at("play").textContent = "Play";
}

function go(by) {
  const next = Math.min(frames.length - 1, Math.max(0, Number(scrubber.value) + by));
  if (next === Number(scrubber.value)) stop();
  scrubber.value = next;
  show();
}

scrubber.addEventListener("input", () => { stop(); show(); });
at("play").addEventListener("click", () => {
  if (timer) return stop();
  if (Number(scrubber.value) === frames.length - 1) scrubber.value = 0;
  at("play").textContent = "Pause";
  timer = setInterval(() => go(1), 120);
});
document.addEventListener("keydown", event => {
  const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!by || event.target === scrubber) return;
  event.preventDefault();
  stop();
  go(by);
});
