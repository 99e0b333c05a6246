import django.db.models.deletion
import memory.ids
import memory.tenants.models
from django.db import migrations, models

from memory.tenants.rls import owned, tie


class Migration(migrations.Migration):

    dependencies = [
        ('tenants', '0060_language'),
    ]

    operations = [
        migrations.CreateModel(
            name='SavedFilter',
            fields=[
                ('id', models.UUIDField(default=memory.ids.new_key, editable=False, primary_key=True, serialize=False)),
                ('public_id', models.CharField(default=memory.tenants.models.filter_id, max_length=100)),
                ('page', models.CharField(max_length=40)),
                ('of', models.CharField(blank=True, max_length=100)),
                ('name', models.CharField(max_length=60)),
                ('query', models.CharField(max_length=1000)),
                ('is_shared', models.BooleanField(default=False)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('removed_at', models.DateTimeField(null=True)),
                ('member', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='filters', to='tenants.member')),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='filters', to='tenants.tenant')),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('is_shared', True), ('removed_at__isnull', True)), fields=['tenant', 'page'], name='tenants_filter_all')],
                'constraints': [models.UniqueConstraint(fields=('public_id', 'tenant'), name='one_filter_per_id'), models.UniqueConstraint(condition=models.Q(('removed_at__isnull', True)), fields=('member', 'page', 'of', 'name'), name='one_filter_per_name_and_list')],
            },
        ),
        *owned("tenants_savedfilter"),
        tie("tenants_savedfilter", "member_id", "tenants_member"),
    ]
