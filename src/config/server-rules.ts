import { limitProblems, type Path, type Problem } from './problems.ts';

/** Checks between the fields of a server that are valid on their own. */

const stdioKeys = ['command', 'args', 'env', 'cwd'];
const remoteKeys = ['url', 'headers'];

interface ServerParts {
  transport: string;
  replicas?: number | null | undefined;
  isolation?: string | null | undefined;
  timeout_ms?: number | null | undefined;
  max_timeout_ms?: number | null | undefined;
}

/** For a server of a request or the database. `reach` is its command or address, at `path`. */
export function serverProblems(server: ServerParts, reach: object, path: Path): Problem[] {
  const { transport, replicas, isolation } = server;
  const isStarted = transport === 'stdio';
  const required = isStarted ? 'command' : 'url';
  const problems: Problem[] = [];
  if (!Object.hasOwn(reach, required)) {
    problems.push({ path: [...path, required], message: `is missing: "${transport}" needs it` });
  }
  for (const key of isStarted ? remoteKeys : stdioKeys) {
    if (!Object.hasOwn(reach, key)) continue;
    problems.push({ path: [...path, key], message: `does not fit the transport "${transport}": remove it` });
  }
  return [
    ...problems,
    ...replicaProblems(isStarted, replicas, isolation, []),
    ...limitProblems([], server, ['timeout_ms', undefined], 'max_timeout_ms'),
  ];
}

export function replicaProblems(
  isStarted: boolean,
  replicas: number | null | undefined,
  isolation: string | null | undefined,
  path: Path,
): Problem[] {
  if ((replicas ?? 1) === 1) return [];
  const message = isStarted
    ? 'contradicts the isolation "session", where every client has its own process'
    : 'needs a "command": add each address as its own server, and give them all the same "group"';
  return isStarted && isolation !== 'session' ? [] : [{ path: [...path, 'replicas'], message }];
}
