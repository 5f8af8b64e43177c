/** What a child needs to find its programs, its home and its language, and nothing that could be a secret. */
const safeNames = ['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'TERM', 'TMPDIR', 'TZ', 'LANG', 'LANGUAGE'];

/** The environment of a child: the safe part of ours, and what is configured for it. */
export function childEnvironment(
  own: Record<string, string | undefined>,
  configured: Record<string, string>,
): Record<string, string> {
  const environment: Record<string, string> = {};
  for (const [name, value] of Object.entries(own)) {
    if (value !== undefined && (safeNames.includes(name) || name.startsWith('LC_')))
      environment[name] = value;
  }
  return { ...environment, ...configured };
}
