/** What `switchboard ls` can list. */
export const listable = ['servers', 'tools', 'resources', 'prompts'] as const;
export type Listable = (typeof listable)[number];

export const DEFAULT_PORT = 7400;
export const DEFAULT_URL = `http://127.0.0.1:${DEFAULT_PORT}`;
/** The variable that names the running Switchboard where `--url` does not. */
export const URL_VARIABLE = 'SWITCHBOARD_URL';
export const DEFAULT_CONFIG = 'mcp.json';
export const DEFAULT_PROJECT = 'default';

/** How a command says with what the program ends. */
export type SetExitCode = (code: number) => void;

/** Where clients find everything, or one project. */
export function endpointOf({ url, project }: { url: string; project?: string | undefined }): string {
  return project === undefined ? `${url}/mcp` : `${url}/mcp/${encodeURIComponent(project)}`;
}
