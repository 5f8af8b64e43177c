import type { SecretView } from '../../api/views.ts';
import { callApi, projectPath } from '../api.ts';
import { exitCodes, usageError } from '../exit.ts';
import { readInput } from '../input.ts';
import { complain, counted, listTable, localTime, print, printJson } from '../output.ts';
import { askHidden, canAsk, isConfirmed } from '../prompt.ts';

interface Flags {
  url: string;
  project: string;
  json?: boolean;
}

export interface SecretSource {
  fromEnv?: string;
  fromFile?: string;
}

export async function listSecrets({ url, project, json }: Flags): Promise<void> {
  const { secrets } = await callApi<{ secrets: SecretView[] }>(url, 'GET', projectPath(project, 'secrets'));
  if (json) printJson(secrets);
  else if (secrets.length === 0) print('no secrets');
  else print(listTable(secrets.map(secretRow)));
}

/** `more` is what stood behind the name: a value there is refused, because it would be seen. */
export async function setSecret(name: string, more: string[], flags: Flags & SecretSource): Promise<void> {
  checkName(name, more);
  const value = await readValue(name, flags);
  if (value === '')
    throw usageError(`The value of ${name} is empty. Remove a secret with: switchboard secret rm ${name}`);
  const path = projectPath(flags.project, 'secrets', name);
  const view = await callApi<SecretView>(flags.url, 'PUT', path, { body: { value } });
  if (flags.json) printJson(view);
  else print(`secret ${name} is set${usedBy(view)}`);
}

export async function removeSecret(name: string, flags: Flags & { yes?: boolean }): Promise<number> {
  const users = flags.yes ? [] : await usersOf(name, flags);
  const use = users.length === 0 ? '' : ` It is used by ${users.join(', ')}, which cannot run without it.`;
  if (use !== '' && !canAsk()) {
    throw usageError(
      `The secret ${name} is used by ${users.join(', ')}, which cannot run without it: say --yes. Nothing was removed.`,
    );
  }
  const question = `Remove the secret ${name} from the project ${flags.project}?${use} Nobody can read it again.`;
  if (!(await isConfirmed(question, flags, 'goes-on'))) {
    complain('Nothing was removed.');
    return exitCodes.failed;
  }
  await callApi(flags.url, 'DELETE', projectPath(flags.project, 'secrets', name));
  if (flags.json) printJson({ removed: name });
  else print(`removed secret ${name}`);
  return exitCodes.ok;
}

/** The servers that refer to it. */
async function usersOf(name: string, { url, project }: Flags): Promise<string[]> {
  const { secrets } = await callApi<{ secrets: SecretView[] }>(url, 'GET', projectPath(project, 'secrets'));
  return secrets.find((secret) => secret.name === name)?.used_by ?? [];
}

/** The secrets that nobody else than this server refers to. None where they cannot be told. */
export async function secretsOnlyOf(server: string, url: string, project: string): Promise<string[]> {
  const answer = await callApi<{ secrets: SecretView[] }>(url, 'GET', projectPath(project, 'secrets')).catch(
    () => undefined,
  );
  const isItsOwn = ({ used_by }: SecretView) => used_by.length === 1 && used_by[0] === server;
  return (answer?.secrets ?? []).filter(isItsOwn).map(({ name }) => name);
}

/** Seals all secrets of all projects with a new key. */
export async function rotateSecrets({ url, json }: Omit<Flags, 'project'>): Promise<void> {
  const done = await callApi<{ rotated: number; key_id: string }>(url, 'POST', '/secrets/rotate');
  if (json) printJson(done);
  else print(`${counted(done.rotated, 'secret')} sealed again, with the key ${done.key_id}`);
}

/** What was typed is not repeated: it may be the value. */
function checkName(name: string, more: string[]): void {
  if (more.length === 0 && !name.includes('=')) return;
  throw usageError(
    'A value on the command line can be seen in the list of processes and in the history of the shell. ' +
      'Pipe it in, or use --from-env or --from-file; on a terminal you are asked for it.',
  );
}

async function readValue(name: string, { fromEnv, fromFile }: SecretSource): Promise<string> {
  if (fromEnv !== undefined && fromFile !== undefined) {
    throw usageError('--from-env and --from-file cannot go together.');
  }
  if (fromEnv !== undefined) {
    const value = process.env[fromEnv];
    if (value === undefined) throw usageError(`The environment variable ${fromEnv} is not set.`);
    return value;
  }
  if (fromFile === undefined && canAsk()) return askHidden(`Value of ${name} (not shown): `);
  // Nearly everything that writes a file or into a pipe ends it with a line break that nobody means.
  return (await readInput(fromFile ?? '-')).replace(/\r?\n$/, '');
}

function secretRow(secret: SecretView): string[] {
  return [secret.name, localTime(secret.updated_at), usedBy(secret).replace(', ', '')];
}

function usedBy({ used_by }: SecretView): string {
  return used_by.length === 0 ? '' : `, used by ${used_by.join(', ')}`;
}
