import type { HostedView } from '../../api/hosted-views.ts';
import { callApi } from '../api.ts';
import { exitCodes } from '../exit.ts';
import { complain, printJson, tellMoved } from '../output.ts';
import { type HostFlags, newHosted } from './flags.ts';
import { tellSettled, untilSettled } from './wait.ts';

interface Flags extends HostFlags {
  name: string;
  project: string;
  url: string;
  detach?: boolean;
  json?: boolean;
}

/** Runs an image as a server, and waits until it is ready or cannot be. */
export async function host(image: string | undefined, command: string[], flags: Flags): Promise<number> {
  const body = newHosted(image, command, flags);
  const server = await callApi<HostedView>(flags.url, 'POST', '/mcp/servers', { body });
  const { name } = server;
  if (!flags.json) complain(`added hosted server ${name} to project ${server.project}`);
  tellMoved(server);
  if (flags.detach) {
    if (flags.json) printJson(server);
    return exitCodes.ok;
  }
  const settled = await untilSettled(server, flags, new Date(0));
  return tellSettled(
    settled,
    flags,
    `It stays registered; see: switchboard logs ${name}, switchboard hosted set ${name}, switchboard rm ${name}`,
  );
}
