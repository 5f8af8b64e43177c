import { SwitchboardError } from '../../errors.ts';

/** A field that is wrong, and why. */
export interface Problem {
  path: readonly PropertyKey[];
  message: string;
}

/** More than anybody would mend in one go. */
export const MAX_PROBLEMS = 100;
const MAX_KEY_LENGTH = 100;

/** One error for all problems of a request, so that they can be mended in one go. */
export function invalidInput(problems: readonly Problem[]): SwitchboardError {
  const shown = problems
    .slice(0, MAX_PROBLEMS)
    .map(({ path, message }) => ({ path: describePath(path), message }));
  const sentences = shown.map(({ path, message }) => (path === '' ? message : `${path} ${message}`));
  const text = sentences.join('; ');
  const message = text.endsWith('?') ? text : `${text}.`;
  return new SwitchboardError('invalid_input', message, { data: { problems: shown } });
}

/** As it would be written in JavaScript: config.args[1]. */
function describePath(path: readonly PropertyKey[]): string {
  return path
    .map((step, index) => {
      if (typeof step === 'number') return `[${step}]`;
      const key = String(step).slice(0, MAX_KEY_LENGTH);
      if (!/^[A-Za-z_$][\w$-]*$/.test(key)) return `[${JSON.stringify(key)}]`;
      return index === 0 ? key : `.${key}`;
    })
    .join('');
}
