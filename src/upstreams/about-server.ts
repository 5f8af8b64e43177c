import { asSwitchboardError, SwitchboardError } from '../errors.ts';
import { ServerAnsweredError } from './own-answers.ts';

/** The same failure, in words that say which server it is about. */
export function aboutServer(error: unknown, name: string): SwitchboardError {
  if (error instanceof ServerAnsweredError) {
    return new SwitchboardError(
      'server_start_failed',
      `Server "${name}" refused the handshake: ${error.message}`,
      {
        cause: error,
        data: { server: name },
      },
    );
  }
  const known = asSwitchboardError(error);
  if (known.data.server === name) return known;
  const code = known.code === 'internal' ? 'server_start_failed' : known.code;
  return new SwitchboardError(code, `Server "${name}" is not available: ${known.message}`, {
    cause: error,
    data: { ...known.data, server: name },
  });
}
