import { SwitchboardError } from '../../errors.ts';

/** Retryable, because the port may become free. */
export function portInUse(server: string, port: number): SwitchboardError {
  return new SwitchboardError(
    'server_start_failed',
    `The port ${port} of this machine, where the server "${server}" is to be published, is taken: end what listens there, or give the server another port (\`port.host\`; switchboard hosted set ${server} --port …).`,
  );
}
