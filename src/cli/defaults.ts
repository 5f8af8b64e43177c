export const listable = ['servers', 'tools', 'resources', 'prompts'] as const;
export type Listable = (typeof listable)[number];

export const DEFAULT_PORT = 7400;
export const DEFAULT_URL = `http://127.0.0.1:${DEFAULT_PORT}`;
/** The default of `--url`. */
export const URL_VARIABLE = 'SWITCHBOARD_URL';
/** A key for that Switchboard. Not an option, because other users can see arguments. */
export const KEY_VARIABLE = 'SWITCHBOARD_KEY';
export const DEFAULT_CONFIG = 'mcp.json';
export const DEFAULT_PROJECT = 'default';

export type SetExitCode = (code: number) => void;

/** The endpoint of all projects, or of one. */
export function endpointOf({ url, project }: { url: string; project?: string | undefined }): string {
  return project === undefined ? `${url}/mcp` : `${url}/mcp/${encodeURIComponent(project)}`;
}
