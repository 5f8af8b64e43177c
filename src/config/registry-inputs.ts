import type { RegistryArgument, RegistryInput } from './registry-schema.ts';
import { variableForInput } from './variables.ts';

type Input = Omit<RegistryInput, 'variables'>;

/** `{variable}`, but not `${variable}`. */
const placeholder = /(?<!\$)\{([^{}]+)\}/g;

/**
 * Turns a registry's inputs into text: known values as literals, values that only the user knows as references. Names from
 * headers, arguments and placeholders get the server's name as a prefix, because names such as "token" are not unique.
 */
export class RegistryInputs {
  private readonly prefix: string;
  private readonly word: 'secret' | 'variable';
  private readonly wanted = new Map<string, string>();
  private readonly leftOut: string[] = [];

  constructor(server: string, word: 'secret' | 'variable') {
    this.prefix = variableName(server);
    this.word = word;
  }

  /** Undefined if the variable is optional and has no value. */
  variable(name: string, input: RegistryInput): string | undefined {
    const isOptional = input.isSecret === true && input.isRequired !== true;
    return this.text(name, variableForInput(name), input, isOptional);
  }

  header(name: string, input: RegistryInput): string | undefined {
    return this.text(name, this.ownName(name), input, false);
  }

  /** Flags before the package are set by the publisher; flags after it are the user's choice. */
  arguments(list: RegistryArgument[], takesFlags: boolean): string[] {
    return list.flatMap((argument) =>
      argument.type === 'named' ? this.named(argument, takesFlags) : this.positional(argument),
    );
  }

  /** Fills in `{variables}`; names without a definition stay unchanged. */
  filled(text: string, variables: Record<string, Input> = {}): string {
    return text.replace(placeholder, (whole, key: string) => {
      if (!Object.hasOwn(variables, key)) return whole;
      const variable = variables[key]!;
      return variable.value ?? variable.default ?? this.reference(this.ownName(key), variable, false);
    });
  }

  notes(): string[] {
    const optional = this.leftOut.length === 0 ? [] : [`left out as optional: ${this.leftOut.join(', ')}`];
    return [...this.wanted.values(), ...optional];
  }

  private positional(argument: RegistryArgument): string[] {
    const name = argument.valueHint ?? argument.name ?? 'argument';
    const value = this.text(name, this.ownName(name), argument, false);
    return value === undefined ? [] : [value];
  }

  private named(argument: RegistryArgument, takesFlags: boolean): string[] {
    const { name = '', isRequired } = argument;
    if (!takesValue(argument)) {
      const isOn = argument.value ?? argument.default ?? String(takesFlags || isRequired === true);
      if (isOn !== 'false') return [name];
      this.leftOut.push(name);
      return [];
    }
    const value = this.text(name, this.ownName(name), argument, false);
    return value === undefined ? [] : [name, value];
  }

  private text(
    shown: string,
    reference: string,
    input: RegistryInput,
    mayBeEmpty: boolean,
  ): string | undefined {
    if (input.value !== undefined) return this.filled(input.value, input.variables);
    if (input.default !== undefined) return input.default;
    if (input.isRequired || input.isSecret) return this.reference(reference, input, mayBeEmpty);
    this.leftOut.push(shown);
    return undefined;
  }

  private reference(name: string, { description, choices }: Input, mayBeEmpty: boolean): string {
    const facts = [description, choices === undefined ? undefined : `one of ${choices.join(', ')}`];
    const known = facts.filter((fact) => fact !== undefined && fact !== '').join('; ');
    const need = `set the ${this.word} ${name}${known === '' ? '' : ` (${known})`}`;
    this.wanted.set(name, mayBeEmpty ? `${need}, if you need it` : need);
    return mayBeEmpty ? `\${${name}:-}` : `\${${name}}`;
  }

  private ownName(name: string): string {
    const own = variableName(name);
    return own.startsWith(`${this.prefix}_`) ? own : `${this.prefix}_${own}`;
  }
}

/** Whether an argument has a value besides its name. */
function takesValue({ format, value, default: usual, ...rest }: RegistryArgument): boolean {
  if (format === 'boolean') return false;
  const { valueHint, placeholder: example, choices, isSecret, variables } = rest;
  const signs = [value, usual, valueHint, example, choices, variables];
  return format !== undefined || isSecret === true || signs.some((sign) => sign !== undefined);
}

function variableName(text: string): string {
  const name = variableForInput(text.replace(/^-+/, '')).toUpperCase();
  return /^\d/.test(name) ? `_${name}` : name;
}
