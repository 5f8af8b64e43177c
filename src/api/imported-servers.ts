import { invalidInput, type Problem } from './http/problems.ts';
import { checkStorable } from './http/storable.ts';
import { type NewServer, newServer } from './server-input.ts';

const MAX_SERVERS = 1_000;

/** Holds servers that were read from another program's file to what any request may bring. */
export function checkImported(servers: readonly NewServer[]): void {
  if (servers.length > MAX_SERVERS) {
    throw invalidInput([{ path: [], message: `must not have more than ${MAX_SERVERS} servers in it` }]);
  }
  checkStorable(Object.fromEntries(servers.map((server) => [server.name, server])));
  const problems = servers.flatMap(problemsOf);
  if (problems.length > 0) throw invalidInput(problems);
}

function problemsOf({ settings, ...server }: NewServer): Problem[] {
  const { error } = newServer.safeParse({ ...server, ...settings });
  return error?.issues.map(({ path, message }) => ({ path: [server.name, ...path], message })) ?? [];
}
