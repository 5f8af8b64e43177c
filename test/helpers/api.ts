import type { ServerView } from '../../src/api/servers.ts';
import { exchange } from './raw-http.ts';
import type { RunningSwitchboard } from './switchboard.ts';

/** A server as the API shows it just now. */
export async function serverOf({ baseUrl }: RunningSwitchboard, name: string): Promise<ServerView> {
  const { text } = await exchange(`${baseUrl}/api/v1/projects/default/servers/${name}`, { method: 'GET' });
  return JSON.parse(text) as ServerView;
}
