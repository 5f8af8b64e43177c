import type { ServerView } from '../../src/api/views.ts';
import { exchange } from './raw-http.ts';
import type { RunningSwitchboard } from './switchboard.ts';

/** A server as the API shows it just now. */
export async function serverOf({ baseUrl }: RunningSwitchboard, name: string): Promise<ServerView> {
  const { text } = await exchange(`${baseUrl}/api/v1/projects/default/servers/${name}`, { method: 'GET' });
  return JSON.parse(text) as ServerView;
}

/** Settles when the API shows the server so. There is no event for how many calls wait, so it is asked again and again. */
export async function serverOnce(
  switchboard: RunningSwitchboard,
  name: string,
  fits: (server: ServerView) => boolean,
): Promise<ServerView> {
  for (;;) {
    const server = await serverOf(switchboard, name);
    if (fits(server)) return server;
  }
}
