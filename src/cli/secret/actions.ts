import type { Rotation, SecretView } from '../../api/views.ts';
import { callApi, projectPath } from '../api.ts';
import { usageError } from '../exit.ts';
import { readInput } from '../input.ts';
import type { ApiFlags, ProjectFlags } from '../options.ts';
import { counted, localTime, printList, printResult } from '../output.ts';
import { askHidden, canAsk, removeConfirmed } from '../prompt.ts';

interface SecretSource {
  fromEnv?: string;
  fromFile?: string;
}

export async function listSecrets(flags: ProjectFlags): Promise<void> {
  printList('secrets', await secretsOf(flags), secretRow, flags);
}

/** `more` has the words after the name. A value there is rejected, because other users can see arguments. */
export async function setSecret(
  name: string,
  more: string[],
  flags: ProjectFlags & SecretSource,
): Promise<void> {
  checkName(name, more);
  const value = await readValue(name, flags);
  if (value === '')
    throw usageError(`The value of ${name} is empty. Remove a secret with: switchboard secret rm ${name}`);
  const path = projectPath(flags.project, 'secrets', name);
  const view = await callApi<SecretView>(flags.url, 'PUT', path, { body: { value } });
  printResult(view, `secret ${name} is set${usedBy(view)}`, flags);
}

export async function removeSecret(name: string, flags: ProjectFlags & { yes?: boolean }): Promise<number> {
  const secret = flags.yes ? undefined : (await secretsOf(flags)).find((each) => each.name === name);
  const users = secret?.used_by.join(', ') ?? '';
  if (users !== '' && !canAsk()) {
    throw usageError(
      `The secret ${name} is used by ${users}, which cannot run without it: use --yes. Nothing was removed.`,
    );
  }
  const use = users === '' ? '' : ` It is used by ${users}, which cannot run without it.`;
  const question = `Remove the secret ${name} from the project ${flags.project}?${use} Its value cannot be recovered.`;
  return removeConfirmed(flags, question, projectPath(flags.project, 'secrets', name), 'secret', name);
}

async function secretsOf({ url, project }: ProjectFlags): Promise<SecretView[]> {
  const path = projectPath(project, 'secrets');
  return (await callApi<{ secrets: SecretView[] }>(url, 'GET', path)).secrets;
}

/** The secrets that only this server uses; empty if that is unknown. */
export async function secretsOnlyOf(server: string, url: string, project: string): Promise<string[]> {
  const secrets = await secretsOf({ url, project }).catch(() => []);
  return secrets
    .filter(({ used_by }) => used_by.length === 1 && used_by[0] === server)
    .map(({ name }) => name);
}

export async function rotateSecrets(flags: ApiFlags): Promise<void> {
  const done = await callApi<Rotation>(flags.url, 'POST', '/secrets/rotate');
  printResult(done, `encrypted ${counted(done.rotated, 'secret')} with the new key ${done.key_id}`, flags);
}

/** The error does not repeat the input, which may be the value. */
function checkName(name: string, more: string[]): void {
  if (more.length === 0 && !name.includes('=')) return;
  throw usageError(
    'A value on the command line is visible in the process list and in the history of the shell. ' +
      'Pipe it in, use --from-env or --from-file, or enter it on a terminal.',
  );
}

async function readValue(name: string, { fromEnv, fromFile }: SecretSource): Promise<string> {
  if (fromEnv !== undefined && fromFile !== undefined) {
    throw usageError('--from-env and --from-file cannot be combined.');
  }
  if (fromEnv !== undefined) {
    const value = process.env[fromEnv];
    if (value === undefined) throw usageError(`The environment variable ${fromEnv} is not set.`);
    return value;
  }
  if (fromFile === undefined && canAsk()) return askHidden(`Value of ${name} (not shown): `);
  // Most programs end a file or pipe with a line break that is not part of the value.
  return (await readInput(fromFile ?? '-')).replace(/\r?\n$/, '');
}

function secretRow(secret: SecretView): string[] {
  return [secret.name, localTime(secret.updated_at), usedBy(secret).replace(', ', '')];
}

function usedBy({ used_by }: SecretView): string {
  return used_by.length === 0 ? '' : `, used by ${used_by.join(', ')}`;
}
