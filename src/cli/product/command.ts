import type { Command } from 'commander';
import type { SetExitCode } from '../defaults.ts';
import { apiCommand, projectOption, yesOption } from '../options.ts';

const help = `
Examples:
  switchboard product install manifest.json
  switchboard product install manifest.json -P research
  switchboard product rm acme-tools

Installing a newer manifest of a product changes what differs: + added, ~ changed, - removed.
"rm" asks for confirmation on a terminal, and not in scripts.`;

export function addProductCommands(program: Command, setExitCode: SetExitCode): void {
  const product = program
    .command('product')
    .description('install and remove products, which add servers to a project')
    .addHelpText('afterAll', help);
  const load = () => import('./actions.ts');

  apiCommand(product, 'ls', 'list the products of a project', [projectOption()]).action(async (flags) =>
    (await load()).listProducts(flags),
  );

  apiCommand(product, 'install', 'install or upgrade a product', [projectOption()])
    .argument('<manifest>', 'a JSON file; - reads stdin')
    .action(async (manifest, flags) => (await load()).installProduct(manifest, flags));

  apiCommand(product, 'rm <name>', 'remove a product and its servers', [projectOption(), yesOption()]).action(
    async (name, flags) => setExitCode(await (await load()).removeProduct(name, flags)),
  );
}
