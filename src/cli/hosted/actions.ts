import type { HostedView } from '../../api/hosted-views.ts';
import { SwitchboardError } from '../../errors.ts';
import { callApi } from '../api.ts';
import { DEFAULT_PROJECT } from '../defaults.ts';
import { exitCodes } from '../exit.ts';
import { complain, listTable, print, printJson, tellMoved } from '../output.ts';
import { isConfirmed } from '../prompt.ts';
import { secretsOnlyOf } from '../secret/actions.ts';
import { allHosted, findHosted, hostedPath } from './find.ts';
import { type ChangeFlags, changesOf } from './flags.ts';
import { hostedRow, hostedText, statusText } from './text.ts';
import { tellSettled, untilSettled, untilStopped } from './wait.ts';

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

type WaitFlags = Flags & { detach?: boolean };

/** The API answers when the new one is ready, or cannot be. */
export async function restartHosted(name: string, flags: Flags): Promise<void> {
  const server = await turn('restart', name, flags);
  if (flags.json) printJson(server);
  else print(`${server.name} is ${statusText(server.status)}`);
}

/** Comes back when nothing of it runs any more. */
export async function stopHosted(name: string, flags: WaitFlags): Promise<number> {
  const told = await turn('stop', name, flags);
  const server = flags.detach ? told : await untilStopped(told, flags.url);
  const isStopped = server.status === 'stopped';
  if (flags.json) printJson(server);
  else print(`${server.name} is ${isStopped ? 'stopped' : 'being stopped'}`);
  return isStopped || flags.detach ? exitCodes.ok : exitCodes.failed;
}

/** Comes back when it is ready, or cannot be. */
export async function startHosted(name: string, flags: WaitFlags): Promise<number> {
  const since = new Date();
  return settle(await turn('start', name, flags), flags, since);
}

/** Changes it, and comes back when it is ready as it is then, or cannot be. */
export async function changeHosted(
  name: string,
  words: string[],
  flags: WaitFlags & ChangeFlags,
): Promise<number> {
  const body = changesOf(words, flags);
  const found = await findHosted(name, flags);
  const since = new Date();
  const server = await callApi<HostedView>(flags.url, 'PATCH', hostedPath(found), { body });
  if (!flags.json) complain(`changed hosted server ${server.name}`);
  tellMoved(server);
  if (server.enabled) return settle(server, flags, since);
  if (flags.json) printJson(server);
  else print(`${server.name} is stopped; start it with: switchboard start ${server.name}`);
  return exitCodes.ok;
}

async function settle(server: HostedView, flags: WaitFlags, since: Date): Promise<number> {
  const { name, status } = server;
  if (!flags.detach) {
    const settled = await untilSettled(server, flags, since);
    return tellSettled(settled, flags, `See: switchboard logs ${name}, switchboard hosted show ${name}`);
  }
  if (flags.json) printJson(server);
  else print(`${name} is ${statusText(status)}`);
  return exitCodes.ok;
}

async function turn(what: 'restart' | 'stop' | 'start', name: string, flags: Flags): Promise<HostedView> {
  const found = await findHosted(name, flags);
  return callApi<HostedView>(flags.url, 'POST', hostedPath(found, what), { timeoutMs: TURN_MS });
}

export async function removeHosted(
  name: string,
  flags: Flags & { volumes?: boolean; yes?: boolean },
): Promise<number> {
  const found = await findHosted(name, flags).catch((error) => {
    if (!flags.volumes || !isUnknown(error)) throw error;
    return undefined;
  });
  if (found === undefined) return removeKept(name, flags);
  const shown = flags.volumes ? found : callApi<HostedView>(flags.url, 'GET', hostedPath(found));
  const server = await Promise.resolve(shown).catch(() => found);
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
  print(`removed hosted server ${server.name}${isKept ? keptText(server) : ''}`);
  tellUnused(secrets, server.project);
  return exitCodes.ok;
}

/** What a server has kept that is gone already. */
async function removeKept(name: string, flags: Flags & { yes?: boolean }): Promise<number> {
  const { project = DEFAULT_PROJECT } = flags;
  const question = `There is no hosted server ${name}. Remove all that one of that name has kept in the project ${project}?`;
  if (!(await isConfirmed(question, flags, 'needs-yes'))) {
    complain('Nothing was removed.');
    return exitCodes.failed;
  }
  await callApi(flags.url, 'DELETE', hostedPath({ id: name }), {
    query: { volumes: 'delete', project },
    timeoutMs: TURN_MS,
  });
  if (flags.json) printJson({ removed: null, volumes_of: name });
  else print(`removed the volumes of ${name}`);
  return exitCodes.ok;
}

function isUnknown(error: unknown): boolean {
  return error instanceof SwitchboardError && error.code === 'not_found';
}

function keptText({ name, project, volume_names }: HostedView): string {
  const names = volume_names?.length ? ` (${volume_names.join(', ')})` : '';
  const where = project === DEFAULT_PROJECT ? '' : ` -P ${project}`;
  return `; its volumes are kept for the next one of that name${names}\nTo remove them: switchboard rm ${name} --volumes${where}`;
}

/** Secrets stay when a server goes: others may come to use them. */
function tellUnused(secrets: string[], project: string): void {
  if (secrets.length === 0) return;
  const where = project === DEFAULT_PROJECT ? '' : ` -P ${project}`;
  complain(
    `note: nobody uses these secrets any more: ${secrets.join(', ')}; remove each with: switchboard secret rm NAME${where}`,
  );
}
