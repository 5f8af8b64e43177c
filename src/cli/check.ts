import { loadConfiguration, readTextOrPipe } from '../config.ts';
import { complain, print, printJson } from './output.ts';

/** Says whether a configuration file is right, and what it means. */
export async function check(path: string, flags: { json?: boolean }): Promise<void> {
  const warnings: string[] = [];
  const { servers, settings } = await loadConfiguration(
    path,
    (warning) => warnings.push(warning),
    readTextOrPipe,
  );
  const names = servers.map(({ name, enabled, transport, group, replicas }) => ({
    name,
    enabled,
    transport: transport.type,
    ...(group === undefined ? {} : { group }),
    replicas,
  }));
  if (flags.json) {
    printJson({ ok: true, servers: names, settings, warnings });
    return;
  }
  for (const warning of warnings) complain(`warning: ${warning}`);
  const disabled = names.filter(({ enabled }) => !enabled).length;
  print(
    `${path} is right: ${servers.length} ${servers.length === 1 ? 'server' : 'servers'}${disabled === 0 ? '' : `, ${disabled} of them disabled`}`,
  );
}
