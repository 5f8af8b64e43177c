import { checkStart, loadConfiguration, readTextOrPipe, selfWarnings } from '../../config.ts';
import { DEFAULT_URL, URL_VARIABLE } from '../defaults.ts';
import { exitCodes } from '../exit.ts';
import { complain, counted, print, printJson } from '../output.ts';

/** Checks a configuration file, and whether its servers could start here. */
export async function check(path: string, flags: { json?: boolean }): Promise<number> {
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
  // Set for each replica when it starts.
  const environment = { SWITCHBOARD_REPLICA: '1', ...process.env };
  const checks = servers.filter(({ enabled }) => enabled).map((server) => checkStart(server, environment));
  const problems = checks.flatMap((found) => found.problems);
  warnings.push(...selfWarnings(servers, process.env[URL_VARIABLE] ?? DEFAULT_URL));
  warnings.push(...checks.flatMap((found) => found.warnings));
  const isValid = problems.length === 0;
  const exitCode = isValid ? exitCodes.ok : exitCodes.failed;
  if (flags.json) {
    printJson({ ok: isValid, servers: names, settings, problems, warnings });
    return exitCode;
  }
  for (const problem of problems) complain(`error: ${problem}`);
  for (const warning of warnings) complain(`warning: ${warning}`);
  if (!isValid) {
    const failing = checks.filter((found) => found.problems.length > 0).length;
    complain(
      `${path} is well-formed, but ${failing} of its ${counted(servers.length, 'server')} cannot start here`,
    );
    return exitCode;
  }
  const disabled = names.filter(({ enabled }) => !enabled).length;
  print(
    `${path} is valid: ${counted(servers.length, 'server')}${disabled === 0 ? '' : `, ${disabled} of them disabled`}`,
  );
  return exitCode;
}
