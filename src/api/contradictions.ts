import type { Problem } from './http/problems.ts';

const stdioKeys = ['command', 'args', 'env', 'cwd'];
const remoteKeys = ['url', 'headers'];

interface Settings {
  transport: string;
  replicas?: number | null | undefined;
  isolation?: string | null | undefined;
  timeout_ms?: number | null | undefined;
  max_timeout_ms?: number | null | undefined;
}

/** Where the keys that say how a server is reached, at `path`, do not fit its transport. */
export function misfits(transport: string, config: object, path: PropertyKey[]): Problem[] {
  const isStarted = transport === 'stdio';
  const needed = isStarted ? 'command' : 'url';
  const foreign = isStarted ? remoteKeys : stdioKeys;
  const has = (key: string) => Object.hasOwn(config, key);
  const missing = has(needed) ? [] : [problem([...path, needed], `is missing: "${transport}" needs it`)];
  return [
    ...missing,
    ...foreign
      .filter(has)
      .map((key) => problem([...path, key], `does not go with the transport "${transport}": remove it`)),
  ];
}

/** Settings that cannot both be meant. */
export function contradictions(server: Settings): Problem[] {
  const { transport, replicas, isolation, timeout_ms: timeout, max_timeout_ms: longest } = server;
  const problems: Problem[] = [];
  if ((replicas ?? 1) > 1 && transport !== 'stdio') {
    const message =
      'needs a "command": make each address a server of its own, and give them all the same "group"';
    problems.push(problem(['replicas'], message));
  } else if ((replicas ?? 1) > 1 && isolation === 'session') {
    const message = 'contradicts the isolation "session", where every client has its own process anyway';
    problems.push(problem(['replicas'], message));
  }
  if (typeof timeout === 'number' && typeof longest === 'number' && longest < timeout) {
    problems.push(problem(['max_timeout_ms'], 'must be at least "timeout_ms": raise it, or lower that'));
  }
  return problems;
}

function problem(path: PropertyKey[], message: string): Problem {
  return { path, message };
}
