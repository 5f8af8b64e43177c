import { connect } from 'node:net';
import { SwitchboardError } from '../errors.ts';

/** A local listener accepts at once. */
const CONNECT_MS = 1_000;

const loopbackHosts = new Set(['127.0.0.1', '::1', 'localhost']);

/**
 * Rejects an address before anything is opened: it must be of this machine, and its port free. It connects rather than
 * listens, so that another program that starts at the same time does not find the port taken.
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
