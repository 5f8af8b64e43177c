import type { ConnectionOpts } from 'e2b';
import { SwitchboardError } from '../../../errors.ts';

export interface Account {
  apiKey: string | undefined;
  domain: string | undefined;
}

/** The part of the optional package `e2b` that we use. */
export type Sdk = Pick<typeof import('e2b'), 'Sandbox'>;

export async function connect({
  apiKey,
  domain,
}: Account): Promise<{ sdk: Sdk; connection: ConnectionOpts }> {
  if (apiKey === undefined || apiKey === '')
    throw new SwitchboardError(
      'invalid_config',
      'E2B_API_KEY is not set: create a key at e2b.dev/dashboard.',
    );
  const sdk = await loadSdk();
  return { sdk, connection: { apiKey, ...(domain === undefined ? {} : { domain }) } };
}

/** Tests replace `load`. */
export async function loadSdk(load: () => Promise<Sdk> = () => import('e2b')): Promise<Sdk> {
  try {
    return await load();
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND';
    throw new SwitchboardError(
      'invalid_config',
      isMissing
        ? 'The package e2b is not installed: run `npm install e2b` where Switchboard is installed (`npm install -g e2b` if it is installed globally).'
        : `The package e2b cannot be loaded: ${textOf(error)}. Run \`npm install e2b\` again where Switchboard is installed.`,
      { cause: error },
    );
  }
}

/** Only a change of the request or the key helps. */
const permanentStatuses = [400, 401, 403, 404];

/** `task` is what failed, such as "start a sandbox". */
export function explain(error: unknown, task: string): SwitchboardError {
  if (error instanceof SwitchboardError) return error;
  const status = statusOf(error);
  const isPermanent = status !== undefined && permanentStatuses.includes(status);
  return new SwitchboardError(
    isPermanent ? 'invalid_config' : 'server_start_failed',
    `E2B could not ${task}: ${textOf(error)}. ${adviceFor(status)}`,
    { cause: error },
  );
}

export function isNotFound(error: unknown): boolean {
  return statusOf(error) === 404;
}

function adviceFor(status: number | undefined): string {
  if (status === 401 || status === 403) return 'Check E2B_API_KEY.';
  if (status === 400 || status === 404) return 'Check that `image` is an E2B template of your team.';
  if (status === 429) return 'Switchboard retries later; see e2b.dev for the limits of your plan.';
  return 'Check the connection to E2B, and status.e2b.dev.';
}

const statusByName: Record<string, number> = {
  AuthenticationError: 401,
  RateLimitError: 429,
  ServiceBusyError: 503,
  SandboxNotFoundError: 404,
  NotFoundError: 404,
};

/** Error codes of the Connect protocol. */
const statusByCode: Record<number, number> = { 3: 400, 5: 404, 7: 403, 8: 429 };

function statusOf(error: unknown): number | undefined {
  if (!(error instanceof Error)) return undefined;
  const { statusCode, code } = error as { statusCode?: unknown; code?: unknown };
  if (typeof statusCode === 'number') return statusCode;
  return statusByName[error.name] ?? (typeof code === 'number' ? statusByCode[code] : undefined);
}

function textOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { message, cause } = error;
  // The cause has the details of a failed connection.
  const text =
    cause instanceof Error && message === 'fetch failed' ? `${message}: ${cause.message}` : message;
  return text.replace(/(?<!\.)\.+$/, '');
}
