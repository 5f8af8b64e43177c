import type { Backend } from './backend.ts';
import { created, noContent, ok } from './http/reply.ts';
import { type Route, route } from './http/route.ts';
import { newProductOf, productManifest } from './inputs.ts';
import { installation, productList } from './views.ts';

export function productRoutes({ products }: Backend): Route[] {
  return [
    route({
      method: 'GET',
      path: '/projects/:project/products',
      operationId: 'listProducts',
      summary: 'The products that are installed in a project',
      answers: { 200: productList },
      handle: async ({ params }) => ok({ products: await products.list(params.project) }),
    }),
    route({
      method: 'POST',
      path: '/projects/:project/products',
      operationId: 'installProduct',
      summary: 'Install a product, or bring one that is installed to another version',
      body: productManifest,
      answers: { 200: installation, 201: installation },
      async handle({ params: { project }, body }) {
        const { isNew, view } = await products.install(project, newProductOf(body));
        return isNew ? created(view, ['projects', project, 'products', view.product.name]) : ok(view);
      },
    }),
    route({
      method: 'DELETE',
      path: '/projects/:project/products/:product',
      operationId: 'removeProduct',
      summary: 'Remove a product and the servers that it brought',
      answers: { 204: null },
      async handle({ params: { project, product } }) {
        await products.remove(project, product);
        return noContent;
      },
    }),
  ];
}
