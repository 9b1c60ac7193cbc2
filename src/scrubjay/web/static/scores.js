// A game's result in words, and the person's scores, which only their browser keeps.

import { browserStorage } from "./api.js";
import { count } from "./words.js";

/** Whose hiding places a person's are compared with. */
const SCRIPTS = { heuristic: "what the heuristic hides", random: "what random play hides" };

/** What a seeker is told. */
export function describeSearch({ found, steps, games, beaten }) {
  const took = `You took ${count(steps, "step")}.`;
  return found && games ? [took, `Faster than ${beaten} of ${othersLabel(games)} with this hider.`] : [took];
}

/** What a hider is told: how the seeker fared, and how that compares with other hiders. */
export function describeHiding({ found, steps, search, games, beaten, scripted }) {
  const sought = found ? `It was found after ${count(search, "step")}` : `Nobody found it in ${count(search, "step")}`;
  const lines = [`${sought}. You took ${count(steps, "step")} to hide it.`];
  const scripts = Object.entries(scripted).map(([name, length]) => `${SCRIPTS[name]} after ${length}`);
  if (scripts.length) lines.push(`On average this seeker finds ${scripts.join(" and ")}.`);
  if (games) lines.push(`Better hidden than in ${beaten} of ${othersLabel(games)} with this seeker.`);
  return lines;
}

const othersLabel = (games) => (games === 1 ? "1 other game" : `${games} other games`);

const NONE = { games: 0, total: 0, best: 0 };

/** The number of games, points in all and most points in a role. */
export function scoresOf(role) {
  try {
    return { ...NONE, ...JSON.parse(browserStorage.get(`scores.${role}`)) };
  } catch {
    return NONE;
  }
}

/** Adds a game's score; returns the sums. */
export function addScore(role, score) {
  const { games, total, best } = scoresOf(role);
  const scores = { games: games + 1, total: total + score, best: Math.max(best, score) };
  browserStorage.set(`scores.${role}`, JSON.stringify(scores));
  return scores;
}

export function tally(role, { games, total, best }) {
  const played = `${role === "seek" ? "Seeking" : "Hiding"}: ${count(games, "game")}`;
  return `${played}, ${Math.round(total / games)} points on average, ${best} at best.`;
}
