import type { HostedView } from '../../api/hosted-views.ts';
import { SwitchboardError } from '../../errors.ts';
import { callApi } from '../api.ts';
import { DEFAULT_PROJECT } from '../defaults.ts';
import { exitCodes } from '../exit.ts';
import type { ApiFlags } from '../options.ts';
import { complain, noteMovedSecrets, print, printJson, printList, printResult } from '../output.ts';
import { confirmRemoval } from '../prompt.ts';
import { secretsOnlyOf } from '../secret/actions.ts';
import { allHosted, findHosted, hostedPath } from './find.ts';
import { type ChangeFlags, changesOf, type HostFlags, newHosted } from './flags.ts';
import { hostedRow, hostedText, statusText } from './text.ts';
import { reportSettled, untilSettled, untilStopped } from './wait.ts';

interface Flags extends ApiFlags {
  project?: string;
}

type WaitFlags = Flags & { detach?: boolean };

/** Stopping takes time, and starting may pull an image. */
const LIFECYCLE_TIMEOUT_MS = 10 * 60_000;

/** Runs an image as a server, and waits until it is ready or has failed. */
export async function host(
  image: string | undefined,
  command: string[],
  flags: WaitFlags & HostFlags & { name: string; project: string },
): Promise<number> {
  const body = newHosted(image, command, flags);
  const server = await callApi<HostedView>(flags.url, 'POST', '/mcp/servers', { body });
  const { name } = server;
  if (!flags.json) complain(`added hosted server ${name} to project ${server.project}`);
  noteMovedSecrets(server);
  if (flags.detach) {
    if (flags.json) printJson(server);
    return exitCodes.ok;
  }
  const settled = await untilSettled(server, flags, new Date(0));
  return reportSettled(
    settled,
    flags,
    `It stays registered; see: switchboard logs ${name}, switchboard hosted set ${name}, switchboard rm ${name}`,
  );
}

export async function listHosted(flags: Flags): Promise<void> {
  const now = new Date();
  printList('hosted servers', await allHosted(flags), (server) => hostedRow(server, now), flags);
}

export async function showHosted(name: string, flags: Flags): Promise<void> {
  const found = await findHosted(name, flags);
  const server = await callApi<HostedView>(flags.url, 'GET', hostedPath(found));
  printResult(server, hostedText(server, new Date()), flags);
}

/** The API responds when the new instance is ready or has failed. */
export async function restartHosted(name: string, flags: Flags): Promise<void> {
  const server = await changeLifecycle('restart', name, flags);
  printResult(server, `${server.name} is ${statusText(server.status)}`, flags);
}

export async function stopHosted(name: string, flags: WaitFlags): Promise<number> {
  const stopping = await changeLifecycle('stop', name, flags);
  const server = flags.detach ? stopping : await untilStopped(stopping, flags.url);
  const isStopped = server.status === 'stopped';
  printResult(server, `${server.name} is ${isStopped ? 'stopped' : 'stopping'}`, flags);
  return isStopped || flags.detach ? exitCodes.ok : exitCodes.failed;
}

export async function startHosted(name: string, flags: WaitFlags): Promise<number> {
  const since = new Date();
  return settle(await changeLifecycle('start', name, flags), flags, since);
}

/** Waits until the server is ready with the change or has failed. */
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
  noteMovedSecrets(server);
  if (server.enabled) return settle(server, flags, since);
  printResult(server, `${server.name} is stopped; start it with: switchboard start ${server.name}`, flags);
  return exitCodes.ok;
}

async function settle(server: HostedView, flags: WaitFlags, since: Date): Promise<number> {
  const { name, status } = server;
  if (!flags.detach) {
    const settled = await untilSettled(server, flags, since);
    return reportSettled(settled, flags, `See: switchboard logs ${name}, switchboard hosted show ${name}`);
  }
  printResult(server, `${name} is ${statusText(status)}`, flags);
  return exitCodes.ok;
}

async function changeLifecycle(
  action: 'restart' | 'stop' | 'start',
  name: string,
  flags: Flags,
): Promise<HostedView> {
  const found = await findHosted(name, flags);
  return callApi(flags.url, 'POST', hostedPath(found, action), { timeoutMs: LIFECYCLE_TIMEOUT_MS });
}

export async function removeHosted(
  name: string,
  flags: Flags & { volumes?: boolean; yes?: boolean },
): Promise<number> {
  const found = await findHosted(name, flags).catch((error) => {
    if (!flags.volumes || !(error instanceof SwitchboardError && error.code === 'not_found')) throw error;
    return undefined;
  });
  if (found === undefined) return removeVolumes(name, flags);
  const detailed = flags.volumes ? found : callApi<HostedView>(flags.url, 'GET', hostedPath(found));
  const server = await Promise.resolve(detailed).catch(() => found);
  const hasVolumes = server.volumes.length > 0;
  const isLost = flags.volumes && hasVolumes;
  const what = `the hosted server ${server.name} of the project ${server.project}`;
  const question = `Remove ${what}${isLost ? ` and the contents of ${server.volumes.join(', ')}` : ''}?`;
  if (!(await confirmRemoval(question, flags, isLost ? 'needs-yes' : 'proceed'))) return exitCodes.failed;
  const secrets = await secretsOnlyOf(server.name, flags.url, server.project);
  await callApi(flags.url, 'DELETE', hostedPath(server), {
    query: { volumes: flags.volumes ? 'delete' : undefined },
    timeoutMs: LIFECYCLE_TIMEOUT_MS,
  });
  if (flags.json) {
    printJson({ removed: server.name, id: server.id, unused_secrets: secrets });
    return exitCodes.ok;
  }
  print(`removed hosted server ${server.name}${!flags.volumes && hasVolumes ? keptText(server) : ''}`);
  noteUnused(secrets, server.project);
  return exitCodes.ok;
}

/** Removes the volumes of a server that was removed before. */
async function removeVolumes(name: string, flags: Flags & { yes?: boolean }): Promise<number> {
  const { project = DEFAULT_PROJECT } = flags;
  const question = `There is no hosted server ${name}. Remove the volumes of a removed server of that name in the project ${project}?`;
  if (!(await confirmRemoval(question, flags, 'needs-yes'))) return exitCodes.failed;
  await callApi(flags.url, 'DELETE', hostedPath({ id: name }), {
    query: { volumes: 'delete', project },
    timeoutMs: LIFECYCLE_TIMEOUT_MS,
  });
  printResult({ removed: null, volumes_of: name }, `removed the volumes of ${name}`, flags);
  return exitCodes.ok;
}

function keptText({ name, project, volume_names }: HostedView): string {
  const names = volume_names?.length ? ` (${volume_names.join(', ')})` : '';
  return `; its volumes are kept for the next server of that name${names}\nTo remove them: switchboard rm ${name} --volumes${projectFlag(project)}`;
}

/** Secrets are kept when the server is removed, since other servers may use them. */
function noteUnused(secrets: string[], project: string): void {
  if (secrets.length === 0) return;
  complain(
    `note: these secrets are no longer used: ${secrets.join(', ')}; remove each with: switchboard secret rm NAME${projectFlag(project)}`,
  );
}

function projectFlag(project: string): string {
  return project === DEFAULT_PROJECT ? '' : ` -P ${project}`;
}
