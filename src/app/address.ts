import { connect } from 'node:net';
import { SwitchboardError } from '../errors.ts';

const CONNECT_MS = 1_000;

const loopbackHosts = new Set(['127.0.0.1', '::1', 'localhost']);

/**
 * Checks before anything is opened that the address is local and its port free. Connects instead of listening, so that it never
 * holds the port while another program starts.
 */
export async function checkAddress(host: string, port: number): Promise<void> {
  if (!loopbackHosts.has(host)) {
    throw new SwitchboardError(
      'invalid_config',
      `Switchboard does not listen on ${host}, because it must not be open to the network: use 127.0.0.1, and a tunnel (ssh -L) from other machines.`,
    );
  }
  if (port === 0 || !(await isTaken(host, port))) return;
  throw new SwitchboardError(
    'invalid_config',
    `port ${port} on ${host} is in use; is Switchboard running already? Choose another with --port`,
  );
}

function isTaken(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: CONNECT_MS });
    const settle = (taken: boolean) => () => {
      socket.destroy();
      resolve(taken);
    };
    socket.on('connect', settle(true)).on('error', settle(false)).on('timeout', settle(false));
  });
}
