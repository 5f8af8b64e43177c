import { type AST, RegExpParser, visitRegExpAST } from '@eslint-community/regexpp';
import { getConsumedChars, getLengthRange, type ReadonlyFlags } from 'regexp-ast-analysis';
import { analyse } from 'scslre';
import { parseAst } from 'vitest/node';
import { lineAt } from './source.ts';

interface Literal {
  source: string;
  flags: string;
  line: number;
}

interface Node {
  type?: string;
  start: number;
  regex?: { pattern: string; flags: string };
  callee?: { name?: string };
}

/** The regular expression literals, and the lines that create others at run time. */
export function regularExpressionsIn(text: string): { literals: Literal[]; constructed: number[] } {
  const literals: Literal[] = [];
  const constructed: number[] = [];
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    const { type, start, regex, callee } = value as Node;
    if (type === 'Literal' && regex !== undefined) {
      literals.push({ source: regex.pattern, flags: regex.flags, line: lineAt(text, start) });
      return;
    }
    if ((type === 'NewExpression' || type === 'CallExpression') && callee?.name === 'RegExp')
      constructed.push(lineAt(text, start));
    for (const child of Object.values(value)) visit(child);
  };
  visit(parseAst(text, { lang: 'ts' }));
  return { literals, constructed };
}

/** The parts that can take more than linear time. */
export function slowParts({ source, flags: flagText }: Pick<Literal, 'source' | 'flags'>): string[] {
  const parser = new RegExpParser();
  const flags = parser.parseFlags(flagText);
  const { unicode, unicodeSets } = flags;
  const pattern = parser.parsePattern(source, 0, source.length, { unicode, unicodeSets });
  const found = analyse({ pattern, flags }).reports.map(({ type }) => type as string);
  // A sticky pattern is tried at one position only.
  if (flags.sticky) return found;
  visitRegExpAST(pattern, {
    onQuantifierEnter(quantifier) {
      if (quantifier.max === Number.POSITIVE_INFINITY && startsOver(quantifier, flags))
        found.push(quantifier.raw);
    },
  });
  return found;
}

/** Whether a match can fail after the quantifier and rescan the same text from each later position. */
function startsOver(quantifier: AST.Quantifier, flags: ReadonlyFlags): boolean {
  const { chars } = getConsumedChars(quantifier.element, flags);
  let isLast = true;
  let node: AST.Node = quantifier;
  while (node.parent !== null) {
    const parent: AST.Node = node.parent;
    if (parent.type === 'Alternative') {
      const at = parent.elements.indexOf(node as AST.Element);
      if (at < parent.elements.length - 1) isLast = false;
      if (parent.elements.slice(0, at).some((before) => isBarrier(before, chars, flags))) return false;
    }
    node = parent;
  }
  // A quantifier at the end cannot fail.
  return !isLast;
}

function isBarrier(
  element: AST.Element,
  chars: ReturnType<typeof getConsumedChars>['chars'],
  flags: ReadonlyFlags,
): boolean {
  if (element.type === 'Assertion' && element.kind === 'start')
    return flags.multiline !== true || !chars.has('\n'.charCodeAt(0));
  if (element.type === 'Assertion' || getLengthRange(element, flags).min === 0) return false;
  if (element.type === 'Group' || element.type === 'CapturingGroup')
    return element.alternatives.every(({ elements }) =>
      elements.some((each) => isBarrier(each, chars, flags)),
    );
  return getConsumedChars(element, flags).chars.isDisjointWith(chars);
}
