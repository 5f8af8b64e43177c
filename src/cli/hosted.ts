import { callApi } from './api.ts';
import { exitCodes } from './exit.ts';
import { allHosted, findHosted, hostedPath } from './hosted-place.ts';
import { hostedRow, hostedText, statusText } from './hosted-text.ts';
import { complain, listTable, print, printJson } from './output.ts';
import { isConfirmed } from './prompt.ts';
import { secretsOnlyOf } from './secret.ts';
import type { HostedView } from './views.ts';
import { DEFAULT_PROJECT } from './words.ts';

interface Flags {
  url: string;
  project?: string;
  json?: boolean;
}

/** Ending one takes its time, and starting it may mean to pull an image. */
const TURN_MS = 10 * 60_000;

export async function listHosted(flags: Flags): Promise<void> {
  const servers = await allHosted(flags);
  const now = new Date();
  if (flags.json) printJson(servers);
  else if (servers.length === 0) print('no hosted servers');
  else print(listTable(servers.map((server) => hostedRow(server, now))));
}

export async function showHosted(name: string, flags: Flags): Promise<void> {
  const found = await findHosted(name, flags);
  const server = await callApi<HostedView>(flags.url, 'GET', hostedPath(found));
  if (flags.json) printJson(server);
  else print(hostedText(server, new Date()));
}

export async function turnHosted(
  what: 'restart' | 'stop' | 'start',
  name: string,
  flags: Flags,
): Promise<void> {
  const found = await findHosted(name, flags);
  const server = await callApi<HostedView>(flags.url, 'POST', hostedPath(found, what), {
    timeoutMs: TURN_MS,
  });
  if (flags.json) printJson(server);
  else print(turnedText(what, server));
}

/** It may still be on its way: what was asked for is written down, and happens. */
function turnedText(what: 'restart' | 'stop' | 'start', { name, status }: HostedView): string {
  return what === 'stop' && status !== 'stopped'
    ? `${name} is being stopped`
    : `${name} is ${statusText(status)}`;
}

export async function removeHosted(
  name: string,
  flags: Flags & { volumes?: boolean; yes?: boolean },
): Promise<number> {
  const server = await findHosted(name, flags);
  const isLost = flags.volumes && server.volumes.length > 0;
  const what = `the hosted server ${server.name} of the project ${server.project}`;
  const question = `Remove ${what}${isLost ? `, and all that it has kept in ${server.volumes.join(', ')}` : ''}?`;
  if (!(await isConfirmed(question, flags, isLost ? 'needs-yes' : 'goes-on'))) {
    complain('Nothing was removed.');
    return exitCodes.failed;
  }
  const secrets = await secretsOnlyOf(server.name, flags.url, server.project);
  await callApi(flags.url, 'DELETE', hostedPath(server), {
    query: { volumes: flags.volumes ? 'delete' : undefined },
    timeoutMs: TURN_MS,
  });
  const isKept = !flags.volumes && server.volumes.length > 0;
  if (flags.json) {
    printJson({ removed: server.name, id: server.id, unused_secrets: secrets });
    return exitCodes.ok;
  }
  print(
    `removed hosted server ${server.name}${isKept ? '; its volumes are kept for the next one of that name' : ''}`,
  );
  tellUnused(secrets, server.project);
  return exitCodes.ok;
}

/** Secrets stay when a server goes: others may come to use them. */
function tellUnused(secrets: string[], project: string): void {
  if (secrets.length === 0) return;
  const where = project === DEFAULT_PROJECT ? '' : ` -P ${project}`;
  complain(
    `note: nobody uses these secrets any more: ${secrets.join(', ')}; remove each with: switchboard secret rm NAME${where}`,
  );
}
