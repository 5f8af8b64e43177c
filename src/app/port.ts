import { connect } from 'node:net';
import { SwitchboardError } from '../errors.ts';

/** Who listens on this machine answers at once. */
const ANSWER_MS = 1_000;

/**
 * Refuses a port that somebody listens on, before anything is made that would be of no use then. By connecting to it and not by
 * listening: another one that starts at the same time must not find it taken because we looked.
 */
export async function refuseTakenPort(host: string, port: number): Promise<void> {
  if (port === 0 || !(await isTaken(host, port))) return;
  throw new SwitchboardError(
    'invalid_config',
    `port ${port} on ${host} is in use; is Switchboard running already? Choose another with --port`,
  );
}

function isTaken(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: ANSWER_MS });
    const answer = (taken: boolean) => () => {
      socket.destroy();
      resolve(taken);
    };
    socket.on('connect', answer(true)).on('error', answer(false)).on('timeout', answer(false));
  });
}
